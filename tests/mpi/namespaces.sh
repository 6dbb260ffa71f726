#!/bin/bash
# A launcher for `mpiexec -launcher rsh -launcher-exec`: starts each emulated host in PID, mount, IPC and user
# namespaces of its own. A host has its own process ids, /proc and /dev/shm, and cannot find, signal or read processes of
# another. Hosts have the network in common, through which mpiexec reaches them, and the directory DIR of
# NTBRING_DEVICE=emu:DIR. Jobs that are spawned on a host of the same mpiexec run in the same namespaces.
#
# usage: namespaces.sh [options of ssh] HOST COMMAND...

while [ "${1#-}" != "$1" ]; do
    shift
done
host=$1
shift
state=${TMPDIR:-/tmp}/ntbring-hosts-$PPID

# Holds the namespaces of the host until mpiexec ends.
hold() {
    unshare --user --map-root-user --pid --fork --kill-child --mount-proc --mount --ipc sh -c '
        mount --bind "$1" /mnt &&
            mount -t tmpfs -o mode=1777 tmpfs /dev/shm &&
            mkdir -p "$1" &&
            mount --move /mnt "$1" &&
            touch "$2/ready" || exit
        while :; do sleep 1; done' sh "${NTBRING_DEVICE#emu:}" "$state/$host" &
    holder=$!
    while [ ! -e "$state/$host/ready" ] && kill -0 $holder; do sleep 0.01; done
    cat "/proc/$holder/task/$holder/children" >"$state/$host/pid.new"
    mv "$state/$host/pid.new" "$state/$host/pid"
    while kill -0 "$PPID"; do sleep 0.2; done
    kill -9 $holder
    rm -r "${state:?}/$host"
    rmdir "$state"
}

if mkdir -p "$state" && mkdir "$state/$host" 2>/dev/null; then
    # mpiexec waits until all copies of its pipes are closed.
    (
        exec </dev/null >/dev/null 2>&1
        for fd in /proc/self/fd/*; do
            fd=${fd##*/}
            [ "$fd" -le 2 ] || eval "exec $fd>&-"
        done
        hold
    ) &
fi
tries=1000
while [ ! -e "$state/$host/pid" ] && [ $((tries -= 1)) -gt 0 ]; do
    sleep 0.01
done
[ -e "$state/$host/ready" ] || exit 1

exec nsenter --target "$(tr -d ' ' <"$state/$host/pid")" --user --preserve-credentials --pid --mount --ipc \
    sh -c 'cd "$1" && exec sh -c "$2"' sh "$PWD" "$*"
