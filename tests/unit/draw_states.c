/* Prints the table of transitions as Markdown, for tools/draw-states. */
#include <stdio.h>

#include "policy/transition.h"

static void print_to(const struct step_row *row)
{
    for (size_t i = 0; i < sizeof(row->to) / sizeof(row->to[0]); i++)
        printf(" %s |", row->to[i]);
    printf("\n");
}

int main(void)
{
    const char *fault = step_table_fault();
    struct step_row row;

    if (fault) {
        (void)fprintf(stderr, "draw_states: %s\n", fault);
        return 1;
    }
    printf(
        "| | step | from | phase | ownership | eligibility | blocking reason | outcome "
        "| attempt | state |\n");
    printf("|---|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; step_row_at(i, &row); i++) {
        printf("| %s | %s | %s |", row.number, row.step, row.from);
        print_to(&row);
    }
    return 0;
}
