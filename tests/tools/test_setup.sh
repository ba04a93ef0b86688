#!/usr/bin/env bash
# tools/setup installs what is missing, and only that.
# shellcheck disable=SC2317 # cases are called by name
set -euo pipefail
root=$BELAY_SOURCE_ROOT
# shellcheck source=tests/tools/tap.sh
. "$root/tests/tools/tap.sh"

# A Debian whose missing packages, user id and apt-get are ours.
mkdir bin
cat >bin/dpkg-query <<'END'
#!/bin/sh
for package; do :; done # the last argument
case " $MISSING " in *" $package "*) exit 1 ;; *) printf installed ;; esac
END
cat >bin/id <<'END'
#!/bin/sh
echo "$USER_ID"
END
cat >bin/apt-get <<'END'
#!/bin/sh
echo "apt-get $* ($DEBIAN_FRONTEND)"
exit "${APT_STATUS:-0}"
END
chmod +x bin/*

# setup MISSING USER_ID GROUP
setup() {
    MISSING=$1 USER_ID=$2 PATH=$PWD/bin:$PATH "$root/tools/setup" "$3"
}

silent() {
    local output
    output=$(setup "$@") && [[ -z $output ]]
}

apt_fails() { APT_STATUS=100 setup meson 0 build; }

check 'nothing is done when nothing is missing' silent '' 0 check
check 'building does not need the tools of check' silent 'clang cppcheck' 1000 build
check 'root gets what is missing' \
    says 0 'install -y -q --no-install-recommends meson libjansson-dev (noninteractive)' \
    setup 'libjansson-dev meson' 0 build
check 'the package lists are refreshed first' says 0 'apt-get update' setup meson 0 build
check 'others are told the packages' \
    says 1 'missing packages: meson shellcheck' setup 'shellcheck meson' 1000 check
check 'others are told the command' \
    says 1 'sudo apt-get install -y meson shellcheck' setup 'shellcheck meson' 1000 check
check 'a failed installation fails' says 100 'apt-get update' apt_fails
check 'an unknown group is a usage error' says 2 'usage: tools/setup' setup '' 0 other

finish
