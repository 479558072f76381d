# The bash completion, asked as bash would ask it.
coffer completion bash >coffer.bash
: >scan.mscan
: >"with space.mscan"
cat >ask.bash <<'END'
source ./coffer.bash
ask() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _coffer
    printf '%s =>' "$*"
    printf ' %s' "${COMPREPLY[@]}"
    echo
}
ask coffer ch
ask coffer check --f
ask coffer check --color ''
ask coffer check --color = a
ask coffer check --color =
ask coffer check --max ''
ask coffer check sc
ask coffer check wi
ask coffer repair -o sc
ask coffer help inf
ask coffer formats ''
ask coffer completion ''
cp "$DATA/vectors/mcf/plain.mcf" model.mcf
ask coffer get model.mcf ''
complete -p coffer
END
bash ask.bash
# The others are at least well-formed text for every verb.
coffer completion zsh | grep -c '^        [a-z]*)$' >verbs
coffer completion fish | grep -c 'use_subcommand -a' | cmp - verbs && echo "zsh and fish know the same verbs"
coffer completion tcsh
echo "exit $?"
