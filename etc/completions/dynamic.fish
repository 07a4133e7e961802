# SPDX-License-Identifier: Apache-2.0
# --- pipectl
function __PROGRAM_models
    pipectl --json models 2>/dev/null | string replace -rf '^    "name": *"([A-Za-z0-9._-]*)".*' '$1'
end
# --- pipesim
function __PROGRAM_names
    pipesim list 2>/dev/null | awk -v want=$argv[1] '/^[a-z]/ { section = $1; next } section == want { print $1 }'
end
function __PROGRAM_networks
    __PROGRAM_names networks
end
function __PROGRAM_platforms
    __PROGRAM_names platforms
end
