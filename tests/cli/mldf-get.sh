# Samples, values and columns of a training set, for people and for other programs.
set="$DATA/vectors/mldf/all-types-208.mldf"
coffer get "$set" 3
coffer get "$set" 3 --json
echo "# one value"
coffer get "$set" 3.label
coffer get "$set" 3.score
coffer get "$set" 3.caption
coffer get "$set" 3.tokens
coffer get "$set" 3.extra
coffer get "$set" 3.caption --json
coffer get "$set" 3.tokens --json
coffer get "$set" 0.emb --json
coffer get "$set" 0.boxes --json
coffer get "$set" 3.image | cksum
coffer get "$set" 3.image -o payload && cksum <payload
coffer get "$set" 3.caption -o caption.txt && od -c caption.txt | tail -n 1
echo "# an absent one"
coffer get "$set" 4.raw 2>&1
echo "exit $?"
coffer get "$set" 4.raw --json
coffer get "$DATA/compat/mldf/tutorial-writer.mldf" 3..6 --field caption
echo "# as files of other programs"
coffer get "$set" 3.image -o x.png && head -c 8 x.png | od -An -tx1
coffer get "$set" 3.image -o x.npy && head -c 80 x.npy | tail -c 70 && echo
coffer get "$set" 3.image --as npy | cksum && cksum <x.npy
coffer get "$set" 0.emb -o e.npy && head -c 80 e.npy | tail -c 70 && echo
coffer get "$set" 0.boxes -o b.npy && head -c 80 b.npy | tail -c 70 && echo
coffer get "$set" 3.tokens -o t.npy && head -c 80 t.npy | tail -c 70 && echo
coffer get "$set" 3.label -o l.npy && tail -c 8 l.npy | od -An -td8
coffer get "$set" 3.audio -o s.wav && od -An -c s.wav | head -n 3
coffer get "$set" 3.audio -o s.npy && head -c 80 s.npy | tail -c 70 && echo
coffer get "$set" 3.audio -o s.raw && tail -c 26 s.wav | cmp - s.raw && echo "the samples follow a WAV head"
coffer get "$set" 0..3.image -o pictures/ && ls pictures
coffer get "$set" 0..3 --field caption -o pictures && cat pictures/1.txt && echo
echo "# a field of many samples"
coffer get "$set" 4..7 --field caption
coffer get "$set" ..3.extra
coffer get "$set" label --json
coffer get "$set" --field score -o score.npy && tail -c 16 score.npy | od -An -tf8
coffer get "$set" emb -o emb.npy && head -c 80 emb.npy | tail -c 70 && echo
coffer get "$set" 15.. --json
coffer get "$set" 15..
echo "# a type nobody knows"
coffer get "$DATA/vectors/mldf/unknown-type.mldf" 0 | head -n 2
coffer get "$DATA/vectors/mldf/unknown-type.mldf" 0.image
echo "# from a pipe"
cat "$set" | coffer get - 5.caption
