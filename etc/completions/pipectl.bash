# SPDX-License-Identifier: Apache-2.0
# bash completion of pipectl

_pipectl_models() { # names of loaded models; nothing when the daemon is not there
    local socket=()
    [ -n "$1" ] && socket=(--socket "$1")
    pipectl "${socket[@]}" --json models 2>/dev/null |
        sed -n 's/^    "name": *"\([A-Za-z0-9._-]*\)".*/\1/p'
}

_pipectl() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command= sub= socket= i word
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        --socket)
            i=$((i + 1))
            socket=${COMP_WORDS[i]}
            ;;
        -*) ;;
        *)
            if [ -z "$command" ]; then
                command=$word
            elif [ -z "$sub" ]; then
                sub=$word
            fi
            ;;
        esac
    done

    case $prev in
    --model)
        mapfile -t COMPREPLY < <(compgen -W "$(_pipectl_models "$socket")" -- "$cur")
        return
        ;;
    --socket | --raw | --expect | --list)
        compopt -o default
        return
        ;;
    --policy)
        mapfile -t COMPREPLY < <(compgen -W "block latest reject" -- "$cur")
        return
        ;;
    --pixfmt)
        mapfile -t COMPREPLY < <(compgen -W "tensor rgb24 bgr24 gray8 nv12 yuyv" -- "$cur")
        return
        ;;
    --algorithm)
        mapfile -t COMPREPLY < <(compgen -W "exact shisha pipe-search pipe-search-database pipe-it exhaustive random hill-climbing hill-climbing-seeded annealing annealing-seeded" -- "$cur")
        return
        ;;
    --objective)
        mapfile -t COMPREPLY < <(compgen -W "throughput latency power" -- "$cur")
        return
        ;;
    --heuristic)
        mapfile -t COMPREPLY < <(compgen -W "1 2 3 4 5 6" -- "$cur")
        return
        ;;
    --frames | --seconds | --clients | --in-flight | --rate | --size | --deadline | --seed | --reconnect | --top | --limit | --plan | --fps | --latency | --alpha | --trials | --max | --ms)
        return
        ;;
    esac

    local words=
    case $command in
    "") words="status infer bench plan models retune history costs calibrate optimise quantize units metrics config reload subscribe watch --socket --json --help --version" ;;
    status | units | costs) words="--model" ;;
    infer)
        words="--model --raw --expect --top --list --inline"
        [[ $cur == -* ]] || { compopt -o default; return; }
        ;;
    bench) words="--model --frames --seconds --clients --in-flight --inline --rate --verify --reconnect --pixfmt --size --policy --deadline --seed" ;;
    plan)
        case $sub in
        "") words="show set auto front explain --model" ;;
        front) words="--max --model" ;;
        *) words="--model" ;;
        esac
        ;;
    models)
        case $sub in
        "") words="list load unload" ;;
        load)
            words="--plan"
            [[ $cur == -* ]] || { compopt -o default; return; }
            ;;
        unload) words=$(_pipectl_models "$socket") ;;
        esac
        ;;
    retune) words="--model --algorithm --objective --fps --latency --alpha --heuristic --trials --seed --wait --no-wait --cancel" ;;
    history) words="--model --limit --trials" ;;
    calibrate) words="--ms" ;;
    quantize | quantise) words="--model --calibrate --min-max --kl --symmetric --keep --bound --ms --write --off" ;;
    optimise) words="--model --objective --algorithm --memory --inexact --calibrate --agreement --episodes --seed --ms --pareto --svg" ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _pipectl pipectl
