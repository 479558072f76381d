# Every verb that writes a file refuses to overwrite one without --force.
exec 2>&1
v=$DATA/vectors
python3 "$DATA/support/trace.py" t.mlyze
for verb in $(coffer help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    help=$(coffer help "$verb")
    case $help in *--output*)
        case $help in *--force*) ;; *) echo "$verb has --output and no --force" ;; esac ;;
    esac
done
same() {
    echo precious >out.svg
    "$@" -o out.svg
    echo "exit $?, $(cat out.svg)"
    "$@" -o out.svg -f
    echo "exit $?, $(head -c 5 out.svg)"
}
same coffer flame t.mlyze
same coffer timeline t.mlyze
same coffer heatmap "$v/mscan/two-sequences.mscan"
same coffer sheet "$v/mldf/checksummed.mldf"
