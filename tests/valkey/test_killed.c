#include "killed.h"
#include "vk.h"

int main(int argc, char **argv)
{
    return killed_main(&vk_target, argc, argv);
}
