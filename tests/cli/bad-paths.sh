# Files that cannot be read: what is wrong, and what to do about it.
mkdir folder
: >empty
printf 'hello, world\n' >hello.txt
ln -s nowhere dangling
say() {
    echo "\$ coffer $*"
    coffer "$@" 2>&1
    echo "exit $?"
}
for verb in info check ls stats; do
    say $verb missing.mscan
    say $verb folder
done
say info dangling
say info missing/x.mscan
say info /dev/zero
say info empty
say check empty
say info hello.txt
say ls hello.txt
say stats hello.txt
say repair hello.txt
say diff hello.txt hello.txt
say info "$(printf 'bad\033[31mname')"
