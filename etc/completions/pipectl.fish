# SPDX-License-Identifier: Apache-2.0
# fish completion of pipectl

function __pipectl_models
    pipectl --json models 2>/dev/null | string replace -rf '^    "name": *"([A-Za-z0-9._-]*)".*' '$1'
end

set -l commands status infer bench plan models retune history costs calibrate optimise quantize units metrics config reload subscribe watch
set -l none "not __fish_seen_subcommand_from $commands"

complete -c pipectl -f
complete -c pipectl -n $none -l socket -r -F -d 'control socket'
complete -c pipectl -l json -d 'print JSON'
complete -c pipectl -n $none -l help -d 'print help'
complete -c pipectl -n $none -l version -d 'print the version'
complete -c pipectl -n $none -a status -d 'what is served, by which plan, on which cores'
complete -c pipectl -n $none -a infer -d 'answers to pictures or raw tensors'
complete -c pipectl -n $none -a bench -d 'stream frames; report speed, latency, order and loss'
complete -c pipectl -n $none -a plan -d 'the plan in force, others and why; serve by another; give it back'
complete -c pipectl -n $none -a models -d 'what is loaded; load and unload'
complete -c pipectl -n $none -a retune -d 'search for a better plan on live frames'
complete -c pipectl -n $none -a history -d 'everything that changed a plan, and what was tried'
complete -c pipectl -n $none -a costs -d 'what each unit takes on each kind of core and width'
complete -c pipectl -n $none -a calibrate -d 'micro-benchmarks, for predictions of what was not measured'
complete -c pipectl -n $none -a optimise -d 'measure the primitives anew and serve by the best'
complete -c pipectl -n $none -a quantize -d 'serve an f32 model on integers, or no longer'
complete -c pipectl -n $none -a units -d 'unit by unit: weight, time, primitive'
complete -c pipectl -n $none -a metrics -d 'counters in Prometheus text format'
complete -c pipectl -n $none -a config -d 'the configuration in force and where it comes from'
complete -c pipectl -n $none -a reload -d 'read the configuration again'
complete -c pipectl -n $none -a subscribe -d 'one line for every change, until interrupted'

complete -c pipectl -n '__fish_seen_subcommand_from status infer bench plan retune history costs units' \
    -l model -x -a '(__pipectl_models)' -d model
complete -c pipectl -n '__fish_seen_subcommand_from infer' -F
complete -c pipectl -n '__fish_seen_subcommand_from infer' -l raw -r -F -d 'write outputs as f32'
complete -c pipectl -n '__fish_seen_subcommand_from infer' -l expect -r -F -d 'file of right classes'
complete -c pipectl -n '__fish_seen_subcommand_from infer' -l list -r -F -d 'file with names of files'
complete -c pipectl -n '__fish_seen_subcommand_from infer' -l top -x -d 'answers a frame'
complete -c pipectl -n '__fish_seen_subcommand_from infer bench' -l inline -d 'no shared memory'
for option in frames seconds clients in-flight rate size deadline seed
    complete -c pipectl -n '__fish_seen_subcommand_from bench' -l $option -x
end
complete -c pipectl -n '__fish_seen_subcommand_from bench' -l verify -d 'compare with answers of lone frames'
complete -c pipectl -n '__fish_seen_subcommand_from bench' -l reconnect -x -d 'wait for a daemon that went away (s)'
complete -c pipectl -n '__fish_seen_subcommand_from bench' -l pixfmt -x -a 'tensor rgb24 bgr24 gray8 nv12 yuyv'
complete -c pipectl -n '__fish_seen_subcommand_from bench' -l policy -x -a 'block latest reject'
complete -c pipectl -n '__fish_seen_subcommand_from plan' -a 'show set auto front explain'
complete -c pipectl -n '__fish_seen_subcommand_from models' -a 'list load unload'
complete -c pipectl -n '__fish_seen_subcommand_from models; and __fish_seen_subcommand_from unload' -a '(__pipectl_models)'
complete -c pipectl -n '__fish_seen_subcommand_from models; and __fish_seen_subcommand_from load' -F
complete -c pipectl -n '__fish_seen_subcommand_from models' -l plan -x -d 'start with it'
complete -c pipectl -n '__fish_seen_subcommand_from front' -l max -x -d 'at most'
complete -c pipectl -n '__fish_seen_subcommand_from retune' -l algorithm -x \
    -a 'exact shisha pipe-search pipe-search-database pipe-it exhaustive random hill-climbing hill-climbing-seeded annealing annealing-seeded'
complete -c pipectl -n '__fish_seen_subcommand_from retune' -l objective -x -a 'throughput latency power'
complete -c pipectl -n '__fish_seen_subcommand_from retune' -l heuristic -x -a '1 2 3 4 5 6'
for option in fps latency alpha trials seed
    complete -c pipectl -n '__fish_seen_subcommand_from retune' -l $option -x
end
complete -c pipectl -n '__fish_seen_subcommand_from retune' -l wait -d 'until it is over (default)'
complete -c pipectl -n '__fish_seen_subcommand_from retune' -l no-wait -d 'only begin'
complete -c pipectl -n '__fish_seen_subcommand_from retune' -l cancel -d 'end the one under way'
complete -c pipectl -n '__fish_seen_subcommand_from optimise' -l objective -x -a 'latency memory'
complete -c pipectl -n '__fish_seen_subcommand_from optimise' -l algorithm -x -a 'dijkstra a-star q-learning ds+ ds rs'
for option in memory agreement episodes seed ms
    complete -c pipectl -n '__fish_seen_subcommand_from optimise' -l $option -x
end
complete -c pipectl -n '__fish_seen_subcommand_from optimise' -l inexact -d 'more rounding than f32 allowed'
complete -c pipectl -n '__fish_seen_subcommand_from optimise' -l calibrate -r -d 'where these frames keep their class'
complete -c pipectl -n '__fish_seen_subcommand_from optimise' -l pareto -d 'change nothing, say what could be'
complete -c pipectl -n '__fish_seen_subcommand_from optimise' -l svg -r -d 'draw the front'
for option in keep bound ms
    complete -c pipectl -n '__fish_seen_subcommand_from quantize quantise' -l $option -x
end
complete -c pipectl -n '__fish_seen_subcommand_from quantize quantise' -l calibrate -r -d 'examples'
complete -c pipectl -n '__fish_seen_subcommand_from quantize quantise' -l min-max -d 'ranges by extremes'
complete -c pipectl -n '__fish_seen_subcommand_from quantize quantise' -l kl -d 'ranges by divergence'
complete -c pipectl -n '__fish_seen_subcommand_from quantize quantise' -l symmetric -d 'activations without a zero point'
complete -c pipectl -n '__fish_seen_subcommand_from quantize quantise' -l write -r -d 'the ranges, for the configuration'
complete -c pipectl -n '__fish_seen_subcommand_from quantize quantise' -l off -d 'no longer'
complete -c pipectl -n '__fish_seen_subcommand_from calibrate' -l ms -x -d 'time to measure'
complete -c pipectl -n '__fish_seen_subcommand_from history' -l trials -d 'what was tried, too'
complete -c pipectl -n '__fish_seen_subcommand_from history' -l limit -x
