#!/bin/busybox sh
# The first process of a lab guest. Words of the kernel's command line that have no dot come as variables.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
$b mount -t tmpfs tmpfs /run
$b mount -t tmpfs tmpfs /tmp
$b mount -t cgroup2 cgroup2 /sys/fs/cgroup
while read -r module; do
    $b insmod "/modules/$module.ko"
done </modules/order
$b ip link set lo up
$b ip addr add 10.0.2.15/24 dev eth0
$b ip link set eth0 up
set --
[ ! -x /bin/windlass-informant ] || [ "${lab_informant:-on}" = off ] || set -- informant ${lab_versions:+"$lab_versions"}
# The load program is to answer also when every vCPU is taken.
$b renice -n -5 $$
echo LAB-BOOTED
while :; do
    /bin/windlass-lab-load serve "$@"
    $b sleep 1
done
