# check --full never says ok about values that it did not read, and a conversion counts what it leaves out.
for file in two-datasets external-storage virtual all-but-empty huge-chunks three-dimensions; do
    coffer check --full "$DATA/hdf5/$file.h5"
    echo "exit $?"
done
coffer check --full --json "$DATA/hdf5/two-datasets.h5"
coffer check "$DATA/hdf5/two-datasets.h5"
echo "exit $?"
coffer convert "$DATA/hdf5/two-datasets.h5" out.npy --dataset b/x 2>&1
coffer convert "$DATA/hdf5/two-datasets.h5" out.pycauset --dataset a --json 2>&1
