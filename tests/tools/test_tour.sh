#!/usr/bin/env bash
# The tour of `make run` gets to its end with the program that was built, and what it prints
# can be pasted: each line, in their order, into an interactive bash.
# shellcheck disable=SC2016,SC2317 # lines are for another shell; cases are called by name
set -euo pipefail
root=$BELAY_SOURCE_ROOT
# shellcheck source=tests/tools/tap.sh
. "$root/tests/tools/tap.sh"
ln -s "$root/build" build # what is made beside it is made here

toured() {
    "$root/tools/tour" >tour.out || {
        cat tour.out
        return 1
    }
    grep -q 'What to type next' tour.out
}

shown() {
    sed -n 's/^\$ //p' tour.out
}

next() {
    sed '1,/^What to type next:$/d; s/^ *//' tour.out
}

# pasted: the lines of standard input are typed, and each ends with 0.  It has a session of
# its own, for a shell that is interactive takes the terminal it finds.
pasted() {
    local line
    {
        # What it leaves behind is a job.
        echo 'fine() { local got=$?; ((got == 0)) && return; echo "$1: exit status $got"'
        echo '    jobs -p | xargs -r kill -9; exit 1; }'
        while IFS= read -r line; do
            printf '%s\nfine %q\n' "$line" "$line"
        done
        echo 'echo the end is reached'
    } >typed
    setsid -w timeout -k 1 30 bash --norc -i <typed >pasted.out 2>&1 || {
        cat pasted.out
        return 1
    }
    grep -qx 'the end is reached' pasted.out
}

tour_pasted() {
    {
        shown
        echo 'build/belay -q ls --lane tour --state completed | wc -l | grep -qx 3'
        echo 'build/belay --output jsonl attempts $three >attempts'
        echo 'test "$(wc -l <attempts)" -eq 2'
        echo 'grep -c "\"worker\":\"second\"" attempts | grep -qx 1'
    } | pasted
}

next_pasted() {
    {
        next | grep -v '^make '
        echo 'build/belay -q ls --lane mail --state completed | wc -l | grep -qx 1'
    } | pasted
}

# A command of make has a goal, and then nothing but a remark.
makes() {
    [[ $(next | grep -c '^make ') -gt 0 ]] &&
        ! next | grep '^make ' | grep -Evx 'make [a-z]+( +#.*)?'
}

nothing_of_this_run() {
    ! shown | grep -E 'exe_[0-9a-z]{8}|kill -9 [0-9]|--key'
}

check 'the tour gets to its end' toured
check 'its lines can be pasted one after the other, and do all of it again' tour_pasted
check 'what to type next can be typed' next_pasted
check 'what is for make is a goal, and then a remark' makes
check 'no line is about the run that printed it' nothing_of_this_run

finish
