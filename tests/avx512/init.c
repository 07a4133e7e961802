/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process 1 of the emulated machine: runs the programs of /tests one after the other and powers
 * off. A line of /tests is NAME=VALUE... PROGRAM [ARGUMENT...]; what the programs print goes to the
 * console, between "-- run LINE" and "-- exit CODE"; "-- end" follows the last.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define WORDS_MAX 32
#define BOCHS_PORT 0x8900 /* the emulator ends where "Shutdown" is written to it */

static void mount_one(const char *type, const char *where)
{
    if (mount(type, where, type, 0, NULL)) {
        perror(where);
    }
}

/* Does not return. */
static void child(char *line)
{
    char *words[WORDS_MAX + 1];
    size_t n = 0;

    for (char *w = strtok(line, " "); w && n < WORDS_MAX; w = strtok(NULL, " ")) {
        if (n == 0 && strchr(w, '=')) {
            putenv(w);
        } else {
            words[n++] = w;
        }
    }
    words[n] = NULL;
    if (n) {
        execv(words[0], words);
        perror(words[0]);
    }
    _exit(127);
}

static void run(char *line)
{
    pid_t pid;
    int status = -1;

    printf("-- run %s\n", line);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        child(line);
    }
    if (pid > 0) {
        waitpid(pid, &status, 0);
    }
    if (WIFSIGNALED(status)) {
        printf("-- signal %d\n", WTERMSIG(status));
    }
    printf("-- exit %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 255);
    fflush(stdout);
}

static void power_off(void)
{
    tcdrain(STDOUT_FILENO);
    if (ioperm(BOCHS_PORT, 1, 1) == 0) {
        for (const char *c = "Shutdown"; *c; c++) {
            outb((unsigned char)*c, BOCHS_PORT);
        }
    }
    reboot(RB_POWER_OFF);
}

int main(void)
{
    FILE *tests;
    char line[512];

    mount_one("devtmpfs", "/dev");
    mount_one("proc", "/proc");
    mount_one("sysfs", "/sys");
    mount_one("tmpfs", "/tmp");
    setenv("PATH", "/usr/bin", 1);
    tests = fopen("/tests", "re");
    while (tests && fgets(line, sizeof(line), tests)) {
        line[strcspn(line, "\n")] = 0;
        run(line);
    }
    printf("-- end\n");
    fflush(stdout);
    power_off();
    return 1;
}
