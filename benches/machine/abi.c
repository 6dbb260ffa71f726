/*
 * abi.c - prints the ABI version that a libntbring.so reports.
 *
 *   abi FILE
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: abi FILE\n");
        return 2;
    }
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    /* The conversion from the manual of dlsym: ISO C has none from a pointer to data to a
     * pointer to a function. */
    uint32_t (*version) (void);
    *(void **) &version = dlsym(library, "ntbring_abi_version");
    if (!version) {
        fprintf(stderr, "%s has no ntbring_abi_version: it is no libntbring\n", argv[1]);
        return 1;
    }
    printf("%u\n", (unsigned) version());
    return 0;
}
