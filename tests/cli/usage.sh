# Messages for mistyped command lines.
say() {
    echo "\$ coffer $*"
    coffer "$@" 2>&1
    echo "exit $?"
}
say chekc
say nothing-like-it
say --frobnicate
say check
say check --fulll x
say check --max
say check --max=0 x
say check --max ten x
say check --color blue x
say check --json=yes x
say check -z x
say check --s --j
say diff a
say diff a b c
say diff a b --tolerance -1
say diff a b --tolerance lots
say repair a --in-place -o b
say help chekc
say formats extra
