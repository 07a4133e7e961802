# SPDX-License-Identifier: Apache-2.0
"""What machine a result is from, as every script of bench/ writes it into its results."""
import os
import platform


def machine():
    """Return: {cpu, cores, kernel, load}."""
    name = platform.machine()
    with open('/proc/cpuinfo', encoding='ascii', errors='replace') as f:
        for line in f:
            if line.startswith(('model name', 'Model')):
                name = line.split(':', 1)[1].strip()
    return {'cpu': name, 'cores': os.cpu_count(), 'kernel': platform.release(), 'load': round(os.getloadavg()[0], 2)}
