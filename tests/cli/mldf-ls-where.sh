# ls lists samples, all or those that meet conditions.
printf '{"path":"cat/1.png","label":1,"text":"one"}\n{"path":"dog/2.png","label":2}\n{"path":"cat/3.png","label":2,"text":"three"}\n' >rows.jsonl
coffer convert rows.jsonl set.mldf
run() {
    echo "\$ coffer ls $*"
    coffer ls "$@" 2>&1
    echo "exit $?"
}
run set.mldf --what samples
run set.mldf --where label=2 --json
run set.mldf --where label=2 --where 'path~cat/*'
run set.mldf 'cat/*' --what samples --csv
run set.mldf --where label=9
run set.mldf --where other=1
run set.mldf --what table --where label=2
run "$DATA/vectors/mcf/directory-first.mcf" --where label=2
