#include "killed.h"
#include "pg.h"

int main(int argc, char **argv)
{
    return killed_main(&pg_target, argc, argv);
}
