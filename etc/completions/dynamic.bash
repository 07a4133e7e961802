# SPDX-License-Identifier: Apache-2.0
# --- pipectl
_PROGRAM_models() { # names of loaded models; nothing when the daemon is not there
    local ask=()
    [ -n "$socket" ] && ask=(--socket "$socket")
    pipectl "${ask[@]}" --json models 2>/dev/null |
        sed -n 's/^    "name": *"\([A-Za-z0-9._-]*\)".*/\1/p'
}
# --- pipesim
_PROGRAM_names() { # names of one section of what pipesim list prints
    pipesim list 2>/dev/null | awk -v want="$1" '/^[a-z]/ { section = $1; next } section == want { print $1 }'
}
_PROGRAM_networks() { _PROGRAM_names networks; }
_PROGRAM_platforms() { _PROGRAM_names platforms; }
