# SPDX-License-Identifier: Apache-2.0
# fish completion of pipectl

function __pipectl_models
    pipectl --json models 2>/dev/null | string replace -rf '^    "name": *"([A-Za-z0-9._-]*)".*' '$1'
end

set -l commands status infer bench plan models retune history units metrics config reload subscribe watch
set -l none "not __fish_seen_subcommand_from $commands"

complete -c pipectl -f
complete -c pipectl -n $none -l socket -r -F -d 'control socket'
complete -c pipectl -l json -d 'print JSON'
complete -c pipectl -n $none -l help -d 'print help'
complete -c pipectl -n $none -l version -d 'print the version'
complete -c pipectl -n $none -a status -d 'what is served, by which plan, on which cores'
complete -c pipectl -n $none -a infer -d 'answers to pictures or raw tensors'
complete -c pipectl -n $none -a bench -d 'stream frames; report speed, latency, order and loss'
complete -c pipectl -n $none -a plan -d 'the plan in force; serve by another; give it back'
complete -c pipectl -n $none -a models -d 'what is loaded; load and unload'
complete -c pipectl -n $none -a retune -d 'measure every unit again and plan anew'
complete -c pipectl -n $none -a history -d 'everything that changed a plan'
complete -c pipectl -n $none -a units -d 'unit by unit: weight, time, primitive'
complete -c pipectl -n $none -a metrics -d 'counters in Prometheus text format'
complete -c pipectl -n $none -a config -d 'the configuration in force and where it comes from'
complete -c pipectl -n $none -a reload -d 'read the configuration again'
complete -c pipectl -n $none -a subscribe -d 'one line for every change, until interrupted'

complete -c pipectl -n '__fish_seen_subcommand_from status infer bench plan retune history units' \
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
complete -c pipectl -n '__fish_seen_subcommand_from plan' -a 'show set auto'
complete -c pipectl -n '__fish_seen_subcommand_from models' -a 'list load unload'
complete -c pipectl -n '__fish_seen_subcommand_from models; and __fish_seen_subcommand_from unload' -a '(__pipectl_models)'
complete -c pipectl -n '__fish_seen_subcommand_from models; and __fish_seen_subcommand_from load' -F
complete -c pipectl -n '__fish_seen_subcommand_from models' -l plan -x -d 'start with it'
complete -c pipectl -n '__fish_seen_subcommand_from retune' -l algorithm -x
complete -c pipectl -n '__fish_seen_subcommand_from history' -l limit -x
