# SPDX-License-Identifier: Apache-2.0
# --- pipectl
_PROGRAM_models() {
    local -a socket names
    [[ -n ${opt_args[--socket]} ]] && socket=(--socket ${opt_args[--socket]})
    names=(${(f)"$(_call_program models pipectl $socket --json models 2>/dev/null |
        sed -n 's/^    "name": *"\([A-Za-z0-9._-]*\)".*/\1/p')"})
    _describe -t models model names
}
# --- pipesim
_PROGRAM_names() {
    local -a names
    names=(${(f)"$(_call_program names pipesim list 2>/dev/null |
        awk -v want=$1 '/^[a-z]/ { section = $1; next } section == want { print $1 }')"})
    compadd -a names
}
_PROGRAM_networks() { _PROGRAM_names networks; _files }
_PROGRAM_platforms() { _PROGRAM_names platforms; _files }
