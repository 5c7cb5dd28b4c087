/* A small engine for engine.py: it takes an effect if one is legal, else the first legal action. */

#include <stdio.h>
#include <string.h>

static const char *const PREFERRED[] = {"visit", "gift", "sell", "paint", "draw", "take"};

int main(void) {
    static char line[1 << 16];
    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "legal ", 6) != 0)
            continue; /* the position, which this engine does not read */
        const char *best = NULL, *first = NULL;
        size_t rank = sizeof PREFERRED / sizeof *PREFERRED;
        for (char *label = strtok(line + 6, " \n"); label; label = strtok(NULL, " \n")) {
            if (!first)
                first = label;
            for (size_t i = 0; i <= rank && i < sizeof PREFERRED / sizeof *PREFERRED; i++)
                if (strncmp(label, PREFERRED[i], strlen(PREFERRED[i])) == 0) {
                    rank = i;
                    best = label; /* the last of equal rank, which sells most */
                }
        }
        puts(best ? best : first);
        fflush(stdout);
    }
    return 0;
}
