# shellcheck shell=bash
# TAP for shell tests: source this, call `check` once a case, end with `finish`.

tap_ran=0
tap_failed=0

# check NAME COMMAND...: a case; what the command prints is shown when it fails.
check() {
    local name=$1 output
    shift
    tap_ran=$((tap_ran + 1))
    if output=$("$@" 2>&1); then
        echo "ok $tap_ran - $name"
    else
        printf '# %s\n' "${output//$'\n'/$'\n# '}"
        echo "not ok $tap_ran - $name"
        tap_failed=1
    fi
}

# says STATUS TEXT COMMAND...: it ends with that status, and TEXT is in what it prints.
says() {
    local want=$1 text=$2 output status=0
    shift 2
    output=$("$@" 2>&1) || status=$?
    if [[ $status -ne $want || $output != *"$text"* ]]; then
        printf 'wanted status %s and: %s\n' "$want" "$text"
        printf 'got status %s and:\n%s\n' "$status" "$output"
        return 1
    fi
}

finish() {
    echo "1..$tap_ran"
    exit "$tap_failed"
}
