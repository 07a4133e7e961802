# SPDX-License-Identifier: Apache-2.0
# bash completion of pipesim

_pipesim_names() { # names of one section of what pipesim list prints
    pipesim list 2>/dev/null | awk -v want="$1" '/^[a-z]/ { section = $1; next } section == want { print $1 }'
}

_pipesim() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} words= head=
    COMPREPLY=()
    case $prev in
    --model)
        mapfile -t COMPREPLY < <(compgen -W "$(_pipesim_names networks)" -- "$cur")
        compopt -o default
        return
        ;;
    --platform)
        mapfile -t COMPREPLY < <(compgen -W "$(_pipesim_names platforms)" -- "$cur")
        compopt -o default
        return
        ;;
    --algorithm)
        [[ $cur == *,* ]] && head=${cur%,*},
        mapfile -t COMPREPLY < <(compgen -P "$head" -W "$(_pipesim_names algorithms)" -- "${cur##*,}")
        return
        ;;
    --objective)
        mapfile -t COMPREPLY < <(compgen -W "throughput latency power" -- "$cur")
        return
        ;;
    --space)
        mapfile -t COMPREPLY < <(compgen -W "default cuts places all" -- "$cur")
        return
        ;;
    --scenario)
        mapfile -t COMPREPLY < <(compgen -W "noise slow-8 slow-15 slow-30 contention drift square frequency governor thermal hotplug cpuset load shape clock button" -- "$cur")
        return
        ;;
    --problem | --table | --figures | --records)
        compopt -o default
        return
        ;;
    --seed | --alpha | --heuristic | --trials | --frames | --fps | --latency | --sigma | --contention | --noise | --top | --share | --runs | --hours | --correlation | --spikes)
        return
        ;;
    esac
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="compare plan list check report adapt replay --help --version"
    else
        case $command in
        compare) words="--model --platform --layers --problem --algorithm --seed --alpha --heuristic --space --trials --frames --objective --fps --latency --sigma --contention --noise --json --help" ;;
        plan) words="--model --platform --layers --problem --objective --fps --latency --one-kind --front --top --json --help" ;;
        list) words="--json --help" ;;
        check) words="--seed --share --table --help" ;;
        adapt) words="--scenario --model --platform --layers --problem --objective --fps --latency --runs --hours --seed --noise --correlation --spikes --sigma --records --json --help" ;;
        replay)
            words="--json --help"
            [[ $cur == -* ]] || { compopt -o default; return; }
            ;;
        report)
            words="--seed --figures --help"
            [[ $cur == -* ]] || { compopt -o default; return; }
            ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _pipesim pipesim
