/* A bot in C, without a JSON library: it takes an effect if one is legal, else the first action.

    cc -O2 -o engine agents/engine.c
    tokaido evaluate exec:./engine random --games 200 --move-seconds 1

Labels contain no quotes, so the list of legal ones can be split at them. */

#include <stdio.h>
#include <string.h>

static const char *const PREFERRED[] = {"visit", "gift", "sell", "paint", "draw", "take"};

int main(void) {
    static char line[1 << 16];
    while (fgets(line, sizeof line, stdin)) {
        if (strstr(line, "\"type\": \"hello\""))
            puts("{\"protocol\": 1}");
        char *legal = strstr(line, "\"legal\": [");
        if (legal) {
            const char *best = NULL, *first = NULL;
            size_t rank = sizeof PREFERRED / sizeof *PREFERRED;
            strtok(legal + strlen("\"legal\": "), "]"); /* the end of the list */
            for (char *label = strtok(legal + strlen("\"legal\": ["), "\", "); label;
                 label = strtok(NULL, "\", ")) {
                if (!first)
                    first = label;
                for (size_t i = 0; i <= rank && i < sizeof PREFERRED / sizeof *PREFERRED; i++)
                    if (strncmp(label, PREFERRED[i], strlen(PREFERRED[i])) == 0) {
                        rank = i;
                        best = label; /* the last of equal rank, which sells most */
                    }
            }
            printf("{\"action\": \"%s\"}\n", best ? best : first);
        }
        fflush(stdout);
    }
    return 0;
}
