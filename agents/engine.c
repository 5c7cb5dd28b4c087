/* A small engine for engine.py: it uses places where it can, and else plays the first action. */

#include <stdio.h>
#include <string.h>

static const char *const WISHES[] = {"visit", "gift", "sell", "paint", "draw", "take"};

int main(void) {
    static char line[1 << 16];
    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "legal ", 6) != 0)
            continue; /* the position, which this engine does not read */
        const char *best = NULL, *first = NULL;
        size_t rank = sizeof WISHES / sizeof *WISHES;
        for (char *label = strtok(line + 6, " \n"); label; label = strtok(NULL, " \n")) {
            if (!first)
                first = label;
            for (size_t i = 0; i <= rank && i < sizeof WISHES / sizeof *WISHES; i++)
                if (strncmp(label, WISHES[i], strlen(WISHES[i])) == 0) {
                    rank = i;
                    best = label; /* of equal ones the last, which sells most */
                }
        }
        puts(best ? best : first);
        fflush(stdout);
    }
    return 0;
}
