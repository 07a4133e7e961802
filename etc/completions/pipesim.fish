# SPDX-License-Identifier: Apache-2.0
# fish completion of pipesim

function __pipesim_names
    pipesim list 2>/dev/null | awk -v want=$argv[1] '/^[a-z]/ { section = $1; next } section == want { print $1 }'
end

set -l commands compare plan list check report adapt replay
set -l none "not __fish_seen_subcommand_from $commands"

complete -c pipesim -f
complete -c pipesim -n $none -l version -d 'print the version'
complete -c pipesim -l help -d 'print help'
complete -c pipesim -n $none -a compare -d 'searches side by side'
complete -c pipesim -n $none -a plan -d 'the exact plan, its runners-up, the front of throughput and latency'
complete -c pipesim -n $none -a list -d 'platforms, networks, algorithms'
complete -c pipesim -n $none -a check -d 'everything that must hold of the searches'
complete -c pipesim -n $none -a report -d 'one page with the figures of the papers'
complete -c pipesim -n $none -a adapt -d 'machines that change by script'
complete -c pipesim -n $none -a replay -d 'recorded decisions, made anew'

set -l subject '__fish_seen_subcommand_from compare plan adapt'
complete -c pipesim -n $subject -l model -r -F -a '(__pipesim_names networks)' -d network
complete -c pipesim -n $subject -l platform -r -F -a '(__pipesim_names platforms)' -d machine
complete -c pipesim -n $subject -l problem -r -F -d 'recorded costs'
complete -c pipesim -n $subject -l layers -d 'count as the papers do'
complete -c pipesim -n $subject -l objective -x -a 'throughput latency power' -d 'what is wanted'
complete -c pipesim -n $subject -l fps -x -d 'to be held'
complete -c pipesim -n $subject -l latency -x -d 'at most (ms)'
complete -c pipesim -n '__fish_seen_subcommand_from compare plan list adapt replay' -l json -d 'print JSON'
complete -c pipesim -n '__fish_seen_subcommand_from plan' -l front -d 'throughput against latency'
complete -c pipesim -n '__fish_seen_subcommand_from plan' -l one-kind -d 'stages of one team'
complete -c pipesim -n '__fish_seen_subcommand_from plan' -l top -x -d 'best plans'
complete -c pipesim -n '__fish_seen_subcommand_from compare' -l algorithm -x -a '(__pipesim_names algorithms)'
complete -c pipesim -n '__fish_seen_subcommand_from compare' -l space -x -a 'default cuts places all'
for option in alpha heuristic trials frames sigma contention noise
    complete -c pipesim -n '__fish_seen_subcommand_from compare' -l $option -x
end
complete -c pipesim -n '__fish_seen_subcommand_from compare check report adapt' -l seed -x -d 'of all chance'
set -l scenarios noise slow-8 slow-15 slow-30 contention drift square frequency governor thermal hotplug cpuset load shape clock button
complete -c pipesim -n '__fish_seen_subcommand_from adapt' -l scenario -x -a "$scenarios" -d 'this alone'
for option in runs hours noise correlation spikes sigma
    complete -c pipesim -n '__fish_seen_subcommand_from adapt' -l $option -x
end
complete -c pipesim -n '__fish_seen_subcommand_from adapt' -l records -r -F -d 'write every decision'
complete -c pipesim -n '__fish_seen_subcommand_from replay' -F
complete -c pipesim -n '__fish_seen_subcommand_from check' -l share -x -d 'of the cases'
complete -c pipesim -n '__fish_seen_subcommand_from check' -l table -r -F -d 'write rows'
complete -c pipesim -n '__fish_seen_subcommand_from report' -F
complete -c pipesim -n '__fish_seen_subcommand_from report' -l figures -r -F -d 'write the charts too'
