# The order of samples is computed from seed, epoch and position; every sample comes once, on any number of processes.
seq 1000 >numbers
sed 's/.*/{"n": &}/' numbers >list.jsonl
coffer pack list.jsonl set.mldf --page-size 4K
coffer order set.mldf --seed 1 -n 8 | tr '\n' ' ' && echo
coffer order set.mldf --seed 1 --epoch 1 -n 8 | tr '\n' ' ' && echo
coffer order set.mldf --seed 2 -n 8 | tr '\n' ' ' && echo
coffer order set.mldf --sequential --from 995 | tr '\n' ' ' && echo
coffer order set.mldf --seed 1 --from 5 -n 3 --json
coffer order set.mldf | sort -n | uniq | wc -l
coffer order set.mldf --window 4 --page-samples 32 | sort -n | uniq | wc -l
for world in 1 3 7; do
    for rank in $(seq 0 $((world - 1))); do
        for worker in 0 1; do
            coffer order set.mldf --seed 9 --rank $rank --world $world --worker $worker --workers 2
        done
    done >dealt
    echo "$world: $(wc -l <dealt) dealt, $(sort -u dealt | wc -l) different"
    for rank in $(seq 0 $((world - 1))); do
        coffer order set.mldf --rank $rank --world $world --drop-last | wc -l
        coffer order set.mldf --rank $rank --world $world --pad | wc -l
    done | tr '\n' ' ' && echo
done
coffer order set.mldf | head -n 1 >/dev/null
echo "exit $?"
