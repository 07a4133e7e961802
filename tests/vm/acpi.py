# SPDX-License-Identifier: Apache-2.0
"""The virtual machine's ACPI table, as ASL text: performance states of unequal cores, and a thermal zone.

Every virtual CPU gets states (_PSS), an up-to-date limit (_PPC) and a domain (_PSD), so that the kernel's
acpi-cpufreq finds one policy a domain. Changing the state has no effect on the emulated speed: what is tested is
what the daemon makes of the kernel's files. The thermal zone reads its temperature, in whole degrees, from the
scratch register of the second serial port (I/O port 0x2ff), which a program in the guest writes through /dev/port;
above its passive trip point the kernel itself lowers the CPUs' limits.
"""
from machine import CLUSTERS

# A row for each frequency of a domain.
MILLIWATTS = ((4000, 2500, 1200), (900, 500, 200))
TEMPERATURE_PORT = 0x2FF
TRIP_C = 80

CPU = """
    Scope (\\_SB.CPUS.C{cpu:03X})
    {{
        Name (_PCT, Package () {{
            ResourceTemplate () {{ Register (SystemIO, 8, 0, 0x80) }},
            ResourceTemplate () {{ Register (SystemIO, 8, 0, 0x80) }} }})
        Name (_PSS, Package () {{ {states} }})
        Name (_PPC, 0)
        Name (_PSD, Package () {{ Package () {{ 5, 0, {domain}, 0xFC, {members} }} }})
    }}
"""
# _TMP and the trip points are in tenths of a kelvin.
THERMAL = """
    Scope (\\_SB)
    {{
        OperationRegion (SCRT, SystemIO, {port:#x}, 1)
        Field (SCRT, ByteAcc, NoLock, Preserve) {{ DEGC, 8 }}
    }}
    Scope (\\_TZ)
    {{
        ThermalZone (HEAT)
        {{
            Method (_TMP, 0, Serialized) {{ Return (2732 + \\_SB.DEGC * 10) }}
            Method (_PSV, 0) {{ Return ({passive}) }}
            Method (_CRT, 0) {{ Return ({critical}) }}
            Name (_PSL, Package () {{ {cpus} }})
            Name (_TC1, 1)
            Name (_TC2, 2)
            Name (_TSP, 5)
            Name (_TZP, 5)
        }}
    }}
"""


def table(cpus, domain_size):
    """Return: ASL of a machine with `cpus` CPUs, `domain_size` in each frequency domain but perhaps the last."""
    names = ["\\_SB.CPUS.C%03X" % cpu for cpu in range(cpus)]
    parts = ["    External (%s, DeviceObj)\n" % name for name in names]
    for cpu in range(cpus):
        domain = cpu // domain_size
        row = min(domain, len(CLUSTERS) - 1)
        states = ", ".join("Package () {%d, %d, 10, 10, %d, %d}" % (mhz, mw, i, i)
                           for i, (mhz, mw) in enumerate(zip(CLUSTERS[row], MILLIWATTS[row])))
        parts.append(CPU.format(cpu=cpu, states=states, domain=domain,
                                members=min(domain_size, cpus - domain * domain_size)))
    parts.append(THERMAL.format(port=TEMPERATURE_PORT, passive=2732 + TRIP_C * 10, critical=2732 + 2000,
                                cpus=", ".join(names)))
    return 'DefinitionBlock ("", "SSDT", 2, "PIPED", "UNEQUAL", 1)\n{\n%s}\n' % "".join(parts)
