# Depth and alpha are kept, or a PNG is stored instead of what cannot hold them.
mkdir in
cp "$DATA/media/alpha.png" "$DATA/media/gray16.png" "$DATA/media/gray16.tiff" "$DATA/media/small.jpg" in/
kind() { # bit depth and color type of a PNG
    coffer get "$1" "$2.image" | od -An -tu1 -j24 -N2
}
for options in "--max-size 4" "--jpeg-quality 90" "--raw"; do
    echo "# $options"
    coffer pack in out.mldf --force $options | sed 's/, [0-9.]* [KM]iB//'
    coffer get out.mldf ..
    kind out.mldf 1
    kind out.mldf 2
done
echo "# arrays of 16 bits"
coffer pack in kept.mldf >/dev/null
coffer get kept.mldf 1.image --as npy | head -c 128 | tr -d '\0' | grep -ao "{.*}"
coffer get kept.mldf 1.image --as npy | tail -c 96 | od -An -tu2 | head -n 1
coffer get kept.mldf 2.image --as npy | tail -c 96 | od -An -tu2 | head -n 1
echo "# a JPEG cannot hold them"
coffer get kept.mldf 0.image -o x.jpg
echo "exit $?"
coffer get kept.mldf 1.image -o x.jpg
echo "exit $?"
