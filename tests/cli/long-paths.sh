# Paths of more than 300 bytes: each message names the right file, the reason and a hint.
exec 2>&1
part=$(printf '%0100d' 0 | tr 0 d)
long=$part/$part/$part
mkdir -p "$long"
cp "$DATA/vectors/mscan/two-sequences.mscan" scan.mscan
cp scan.mscan "$long/scan.mscan"
shorten() {
    sed "s/$part/D/g"
}
run() {
    echo "\$ coffer $*" | shorten
    coffer "$@" >out 2>&1
    code=$?
    shorten <out
    echo "exit $code"
}
run info "$long/missing.mscan"
run convert "$long/missing.mscan" rows.csv
run convert scan.mscan "$long/none/rows.csv"
run convert scan.mscan "$long"
touch "$long/rows.csv"
run convert scan.mscan "$long/rows.csv"
run append "$long/missing.mscan" rows.csv
run append "$long/scan.mscan" "$long/missing.csv"
run append scan.mscan "$long/missing.csv"
run repair "$long/scan.mscan" -o "$long/none/out.mscan"
run info "$long/$part$part$part"
