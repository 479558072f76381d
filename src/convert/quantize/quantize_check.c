/* Compares a quantized model with its original. */
#include "base/fail.h"
#include "base/options.h"
#include "base/report.h"
#include "convert/quantize/quantize.h"
#include "convert/tensors/tensor_pass.h"
#include "convert/tensors/tensors.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Sums are cut elsewhere than they were when the model was made, and the record has 24 bits. */
#define SNR_TOLERANCE 0.01 /* dB */
#define ERROR_TOLERANCE 1e-5

/* ---- The comparison ---- */

static void init(void *result)
{
    coffer__comparison_init(result);
}

static void merge(void *into, const void *from)
{
    coffer__comparison_merge(into, from);
}

/* As float32, and what is not finite as the 0 that it was taken for. */
static void step(void *result, const void *context, uint64_t first, const coffer__tensors_run *runs,
                 size_t count)
{
    float original[1024];
    size_t size = coffer_dtype_size(runs[0].dtype), at_once = sizeof original / sizeof *original;
    (void)context;
    for (size_t done = 0; done < count;) {
        size_t now = count - done < at_once ? count - done : at_once;
        coffer__elements_convert(original, COFFER_DTYPE_F32, (const uint8_t *)runs[0].elements + done * size,
                                 runs[0].dtype, now);
        for (size_t i = 0; i < now; i++)
            original[i] = isfinite(original[i]) ? original[i] : 0.0f;
        coffer__comparison_add(result, first + done, original, COFFER_DTYPE_F32,
                               (const float *)runs[1].elements + done, COFFER_DTYPE_F32, now, 0.0);
        done += now;
    }
}

static const coffer__tensors_pass comparing = { sizeof(coffer__comparison), init, step, merge };

/* ---- Comparison with the recorded error ---- */

/* The rounding of a record of infinity, too. */
static bool is_near(double recorded, double found, double tolerance)
{
    return recorded == found || fabs(recorded - found) <= tolerance;
}

static void judge(coffer_report *out, const coffer_tensor *tensor, const coffer_mcf_quality *said,
                  const coffer__comparison *found)
{
    double snr = coffer__comparison_snr(found);
    if (!is_near((double)said->snr_db, snr, SNR_TOLERANCE))
        coffer__report_add(out, COFFER_E_INCONSISTENT, COFFER_ERROR, tensor->offset,
                           "\"%s\": the file records a signal-to-noise ratio of %.2f dB, compared with the "
                           "original it is %.2f",
                           tensor->name, (double)said->snr_db, snr);
    if (!is_near((double)said->max_error, found->max_abs, ERROR_TOLERANCE * found->max_abs))
        coffer__report_add(
            out, COFFER_E_INCONSISTENT, COFFER_ERROR, tensor->offset,
            "\"%s\": the file records a largest error of %g, compared with the original it is %g",
            tensor->name, (double)said->max_error, found->max_abs);
}

static coffer_status check_tensor(coffer_report *out, coffer__tensors_workers *workers,
                                  const coffer__tensors_place *place, const coffer_tensors *original,
                                  coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(place->set, place->tensor);
    const coffer__tensors_entry *entry = coffer__tensors_entry_at(place->set, place->tensor);
    coffer__tensors_place places[2] = { { original, coffer_tensors_find(original, tensor->name) }, *place };
    coffer__comparison found;
    const coffer_mcf_quality *recorded =
        coffer_mcf_quality_at(coffer__mcf_model_of(place->set), entry->index);
    if (!recorded)
        return COFFER_OK;
    if (places[0].tensor == COFFER_INDEX_NONE) {
        coffer__report_add(out, COFFER_E_MISSING, COFFER_ERROR, tensor->offset,
                           "\"%s\" is not in the original", tensor->name);
        return COFFER_OK;
    }
    const coffer_tensor *from = coffer_tensors_at(original, places[0].tensor);
    if (from->elements != tensor->elements) {
        coffer__report_add(out, COFFER_E_INCONSISTENT, COFFER_ERROR, tensor->offset,
                           "\"%s\" has %" PRIu64 " elements, in the original %" PRIu64, tensor->name,
                           tensor->elements, from->elements);
        return COFFER_OK;
    }
    if (coffer_dtype_is_complex(from->dtype)) {
        coffer__report_add(out, COFFER_E_INCONSISTENT, COFFER_ERROR, tensor->offset,
                           "\"%s\" is complex in the original", tensor->name);
        return COFFER_OK;
    }
    coffer_status status = coffer__tensors_pass_run(&found, workers, &comparing, NULL, places, 2, err);
    if (!status)
        judge(out, tensor, recorded, &found);
    return status;
}

static bool has_quality(const coffer_tensors *set)
{
    const coffer_mcf *model = coffer__mcf_model_of(set);
    return model && coffer_mcf_find_section(model, COFFER_MCF_QUALITY);
}

coffer_status coffer_mcf_quantize_check(coffer_report *out, const char *path, const char *original_path,
                                        const coffer_mcf_work_opts *opts, coffer_error *err)
{
    coffer_mcf_work_opts settings = COFFER_MCF_WORK_OPTS_INIT;
    coffer_tensors *set = NULL, *original = NULL;
    coffer__tensors_workers *workers = NULL;
    uint64_t total = 0;
    coffer_status status = coffer__take_options(&settings, sizeof settings, opts, err);
    if (!status)
        status = coffer_tensors_open_path(&set, path, NULL, err);
    if (!status)
        status = coffer_tensors_open_path(&original, original_path, NULL, err);
    if (status)
        goto out;
    if (!has_quality(set)) {
        coffer__report_add(out, COFFER_E_MISSING, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "the file does not record quantization errors: nothing to compare");
        goto out;
    }
    for (size_t i = 0; i < coffer_tensors_count(set); i++)
        total += coffer_tensors_at(set, i)->size;
    status = coffer__tensors_workers_new(&workers, settings.threads, settings.progress, total, err);
    for (size_t i = 0; !status && i < coffer_tensors_count(set); i++) {
        coffer__tensors_place place = { set, i };
        status = check_tensor(out, workers, &place, original, err);
    }
    if (!status)
        status = coffer__report_status(out, err);
out:
    coffer__tensors_workers_free(workers);
    coffer_tensors_close(original);
    coffer_tensors_close(set);
    return status;
}
