#!/usr/bin/env -S python3 -B
"""What is installed is enough to build and run programs against."""

import os
import pathlib
import re
import subprocess

import tap
from tap import case, same

ROOT = pathlib.Path("root").resolve()

PLAIN_C = """
#include <belay/belay.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    struct belay_options options;
    struct belay_error err;
    struct belay_cancel *cancel;
    struct belay_arena *arena;
    struct belay *b = NULL;

    memset(&options, 0, sizeof(options));
    options.size = sizeof(options);
    options.ns = "installed";
    if (belay_open("memory:", &options, &b, &err) != BELAY_OK)
        return 1;
    if (belay_cancel_new(&cancel, &err) != BELAY_OK)
        return 2;
    if (belay_arena_new(&arena, NULL) != BELAY_OK)
        return 3;
    belay_cancel_trigger(cancel);
    printf("%s %s %s %d\\n", belay_version(), belay_namespace(b),
           belay_durability_name((int)belay_durability(b)),
           belay_cancel_triggered(cancel));
    belay_arena_free(arena);
    belay_cancel_free(cancel);
    belay_close(b);
    if (belay_open("memory:secret", NULL, &b, &err) != BELAY_INVALID)
        return 4;
    return strstr(err.message, "secret") ? 5 : 0;
}
"""

PLAIN_CXX = """
#include <belay/belay.h>
#include <iostream>
#include <memory>

int main()
{
    belay_options options{};
    options.size = sizeof(options);
    options.retry.number_of_retries = BELAY_NONE;
    belay_error err;
    belay *opened = nullptr;
    if (belay_open("memory:", &options, &opened, &err) != BELAY_OK)
        return 1;
    std::unique_ptr<belay, decltype(&belay_close)> b(opened, belay_close);
    enum belay_durability durability = belay_durability(b.get());
    std::cout << belay_namespace(b.get()) << ' ' << belay_durability_name(durability)
              << std::endl;
    return 0;
}
"""


def run(*command, **options):
    ran = subprocess.run(command, check=False, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=120, **options)
    same((ran.returncode, ran.stdout if ran.returncode else ""), (0, ""))
    return ran.stdout


def installed(pattern):
    found = sorted(ROOT.glob("**/" + pattern))
    assert found, f"{pattern} is not installed"
    return found[0]


def pkg_config(*words):
    env = os.environ | {"PKG_CONFIG_LIBDIR": str(installed("belay.pc").parent),
                        "PKG_CONFIG_SYSROOT_DIR": str(ROOT)}
    return run("pkg-config", *words, "belay", env=env).split()


def build_and_run(compiler, suffix, text):
    source = pathlib.Path("program" + suffix)
    source.write_text(text, encoding="utf-8")
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    run(*compiler, *strict, *pkg_config("--cflags"), source, "-o", "program",
        *pkg_config("--libs"))
    env = os.environ | {"LD_LIBRARY_PATH": str(installed("libbelay.so.0").parent)}
    return run("./program", env=env).split()


@case("everything is installed below DESTDIR")
def _():
    run("meson", "install", "-C", tap.BUILD, "--no-rebuild", "--destdir", ROOT)
    for pattern in ("bin/belay", "libbelay.so", "libbelay.so.0", "man1/belay.1",
                    "man3/belay.3", "pkgconfig/belay.pc", "include/belay/belay.h"):
        installed(pattern)
    ours = {path.name for path in (tap.SOURCE / "include" / "belay").glob("*.h")}
    same({path.name for path in installed("include/belay").glob("*")}, ours)


@case("the installed program runs by itself")
def _():
    version = run(installed("bin/belay"), "version", "-q").strip()
    same(pkg_config("--modversion"), [version])


@case("a C program builds and runs with what pkg-config says")
def _():
    version = pkg_config("--modversion")[0]
    same(build_and_run(["gcc", "-std=c17"], ".c", PLAIN_C),
         [version, "installed", "inline", "1"])
    same(build_and_run(["clang", "-std=c17"], ".c", PLAIN_C),
         [version, "installed", "inline", "1"])


@case("a C++ program does, too")
def _():
    same(build_and_run(["g++", "-std=c++17"], ".cc", PLAIN_CXX), ["default", "inline"])


@case("the example of belay(3) builds and runs")
def _():
    page = run("man", "-E", "UTF-8", "-l", installed("man3/belay.3"),
               env={"PATH": "/usr/bin:/bin", "MANWIDTH": "100", "LC_ALL": "C.UTF-8"})
    example = re.search(r"^EXAMPLES\n(.*?)^SEE ALSO", page, re.DOTALL | re.MULTILINE)[1]
    same(build_and_run(["gcc", "-std=c17"], ".c", example), ["default:", "inline"])


@case("the library has a soname and exports nothing but belay_ names")
def _():
    library = installed("libbelay.so")
    assert "Library soname: [libbelay.so.0]" in run("readelf", "-d", library)
    for line in run("nm", "-D", "--defined-only", "--format=posix", library).splitlines():
        assert re.match(r"(belay_|BELAY_0 A)", line), line


tap.main()
