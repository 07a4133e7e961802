# SPDX-License-Identifier: Apache-2.0
"""What the arm64 machine's device tree gains: capacities and frequencies of two unequal clusters, as an overlay.

QEMU describes equal cores in two clusters and no clocks. The overlay gives every core a capacity and every cluster a
clock and a table of operating points, so that the kernel's cpufreq-dt finds one policy a cluster. A clock is a chain
of multiplexers that lines of the machine's PL061 GPIO chip switch: changing the frequency has no effect on the
emulated speed, but all of it is the kernel's own doing.
"""

CAPACITY = (1024, 512)  # a MHz, as capacity-dmips-mhz means it: big, little
TRANSITION_NS = 100000
# The chip has eight lines. QEMU's power key is on line 3.
FIRST_LINE = (0, 4)

OVERLAY = """/dts-v1/;
/plugin/;
/ {{
    fragment-clocks {{
        target-path = "/";
        __overlay__ {{
{clocks}        }};
    }};
{cpus}}};
"""
FIXED = """            {label}: clock-{name} {{
                compatible = "fixed-clock";
                #clock-cells = <0>;
                clock-frequency = <{hz}>;
            }};
"""
MUX = """            {label}: clock-{name} {{
                compatible = "gpio-mux-clock";
                #clock-cells = <0>;
                clocks = <&{a}>, <&{b}>;
                select-gpios = <{chip} {line} 0>;
            }};
"""
POINTS = """            {cluster}_points: opp-table-{cluster} {{
                compatible = "operating-points-v2";
                opp-shared;
{rows}            }};
"""
POINT = """                opp-{hz} {{
                    opp-hz = /bits/ 64 <{hz}>;
                    clock-latency-ns = <{latency}>;
                }};
"""
CPU = """    fragment-cpu{cpu} {{
        target-path = "/cpus/cpu@{cpu}";
        __overlay__ {{
            capacity-dmips-mhz = <{capacity}>;
            clocks = <&{clock}>;
            operating-points-v2 = <&{cluster}_points>;
            #cooling-cells = <2>;
        }};
    }};
"""


def clocks_of(cluster, mhz, chip, line):
    """Return: (nodes, label of the clock that can be each of `mhz`)."""
    text, last = "", None
    for i, rate in enumerate(sorted(mhz)):
        label = "%s_%d" % (cluster, rate)
        text += FIXED.format(label=label, name="%s-%d" % (cluster, rate), hz=rate * 1000000)
        if last is not None:
            mux = "%s_mux%d" % (cluster, i)
            text += MUX.format(label=mux, name="%s-mux%d" % (cluster, i), a=last, b=label, chip=chip, line=line + i - 1)
            label = mux
        last = label
    return text, last


def overlay(clusters, cluster_size, chip):
    """`clusters`: the frequencies in MHz of each; `chip`: phandle of the GPIO chip. Return: source of the overlay."""
    clocks = cpus = ""
    for number, mhz in enumerate(clusters):
        cluster = "cluster%d" % number
        nodes, clock = clocks_of(cluster, mhz, chip, FIRST_LINE[number])
        rows = "".join(POINT.format(hz=rate * 1000000, latency=TRANSITION_NS) for rate in sorted(mhz))
        clocks += nodes + POINTS.format(cluster=cluster, rows=rows)
        for cpu in range(number * cluster_size, (number + 1) * cluster_size):
            cpus += CPU.format(cpu=cpu, capacity=CAPACITY[number], clock=clock, cluster=cluster)
    return OVERLAY.format(clocks=clocks, cpus=cpus)
