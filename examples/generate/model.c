/* The forward pass of Llama and its relatives: rotary positions, grouped heads, RMSNorm, SwiGLU; the biases
 * of Qwen2 and the norms of queries and keys of Qwen3. */
#include "generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BATCH = 128 /* tokens of a prompt that are computed together */ };

/* A matrix in the file: quantized ones stay so, others become float32. */
typedef struct matrix {
    coffer_quant_tensor quantized; /* payload : NULL for floats */
    float *floats;
    size_t rows, cols;
} matrix;

typedef struct layer {
    float *attention_norm, *ffn_norm, *q_norm, *k_norm; /* the last two : NULL without */
    matrix q, k, v, o, gate, up, down;
    float *q_bias, *k_bias, *v_bias; /* NULL without */
    float *keys, *values;            /* of all positions so far */
} layer;

struct model {
    const coffer_mcf *file;
    coffer_quant_product_opts product_opts;
    const json *config;
    uint32_t hidden, ffn, layer_count, heads, kv_heads, head_dim, vocab, context, position;
    float norm_eps;
    float *frequencies;     /* of rotation: head_dim / 2 */
    float *cosines, *sines; /* of the positions of a batch, head_dim / 2 for each */
    layer *layers;
    matrix embedding, output;
    float *final_norm;
    float *x, *normed, *q, *k, *v, *mixed, *gate, *up, *scores, *logits;
    int ends[8];
    size_t end_count;
};

/* ---- Loading ---- */

static size_t find(const model *m, const char *name, bool required)
{
    size_t index = coffer_mcf_find_tensor(m->file, name, strlen(name));
    if (index == COFFER_INDEX_NONE && required)
        die("the model has no tensor %s", name);
    return index;
}

static float *load_floats(const model *m, size_t index, uint64_t rows)
{
    const coffer_mcf_tensor *tensor = coffer_mcf_tensor_at(m->file, index);
    coffer_error err = COFFER_ERROR_INIT;
    float *floats = allocate((size_t)tensor->elements, sizeof *floats);
    if (coffer_mcf_read_rows_f32(floats, m->file, index, 0, rows, &err))
        die("%s: %s", tensor->name, err.text);
    return floats;
}

static float *load_vector(const model *m, const char *prefix, const char *name, size_t length, bool required)
{
    char full[160];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    size_t index = find(m, full, required);
    if (index == COFFER_INDEX_NONE)
        return NULL;
    if (coffer_mcf_tensor_at(m->file, index)->elements != length)
        die("%s does not have the %zu elements that config.json says", full, length);
    return load_floats(m, index, 1);
}

static matrix load_matrix(const model *m, const char *prefix, const char *name, size_t rows, size_t cols)
{
    char full[160];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    size_t index = find(m, full, true);
    const coffer_mcf_tensor *tensor = coffer_mcf_tensor_at(m->file, index);
    matrix w = { COFFER_QUANT_TENSOR_INIT, NULL, rows, cols };
    if (tensor->rank != 2 || tensor->dims[0] != rows || tensor->dims[1] != cols)
        die("%s does not have the shape [%zu, %zu] that config.json says", full, rows, cols);
    if (!coffer_dtype_is_quantized(tensor->dtype)) {
        w.floats = load_floats(m, index, rows);
        return w;
    }
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_mcf_verify(m->file, index, 0, tensor->size, &err))
        die("%s: %s", full, err.text);
    w.quantized.dtype = tensor->dtype;
    w.quantized.rows = rows;
    w.quantized.cols = cols;
    w.quantized.payload = coffer_mcf_view(m->file, index);
    w.quantized.size = (size_t)tensor->size;
    if (!w.quantized.payload)
        die("%s is not mapped: the file must be on a local disk", full);
    return w;
}

static void load_layer(const model *m, layer *l, uint32_t number)
{
    char prefix[64];
    size_t hidden = m->hidden, q_size = (size_t)m->heads * m->head_dim,
           kv_size = (size_t)m->kv_heads * m->head_dim;
    snprintf(prefix, sizeof prefix, "model.layers.%u.", number);
    l->attention_norm = load_vector(m, prefix, "input_layernorm.weight", hidden, true);
    l->ffn_norm = load_vector(m, prefix, "post_attention_layernorm.weight", hidden, true);
    l->q_norm = load_vector(m, prefix, "self_attn.q_norm.weight", m->head_dim, false);
    l->k_norm = load_vector(m, prefix, "self_attn.k_norm.weight", m->head_dim, false);
    l->q = load_matrix(m, prefix, "self_attn.q_proj.weight", q_size, hidden);
    l->k = load_matrix(m, prefix, "self_attn.k_proj.weight", kv_size, hidden);
    l->v = load_matrix(m, prefix, "self_attn.v_proj.weight", kv_size, hidden);
    l->o = load_matrix(m, prefix, "self_attn.o_proj.weight", hidden, q_size);
    l->q_bias = load_vector(m, prefix, "self_attn.q_proj.bias", q_size, false);
    l->k_bias = load_vector(m, prefix, "self_attn.k_proj.bias", kv_size, false);
    l->v_bias = load_vector(m, prefix, "self_attn.v_proj.bias", kv_size, false);
    l->gate = load_matrix(m, prefix, "mlp.gate_proj.weight", m->ffn, hidden);
    l->up = load_matrix(m, prefix, "mlp.up_proj.weight", m->ffn, hidden);
    l->down = load_matrix(m, prefix, "mlp.down_proj.weight", hidden, m->ffn);
    l->keys = allocate((size_t)m->context * kv_size, sizeof(float));
    l->values = allocate((size_t)m->context * kv_size, sizeof(float));
}

static uint32_t config_count(const model *m, const char *key, uint32_t missing)
{
    double number = json_number(m->config, key, missing);
    if (!(number >= 1 && number <= 1 << 24))
        die("config.json: %s is missing or not a number in range", key);
    return (uint32_t)number;
}

/* How fast each pair of elements rotates. Llama 3.1 slows the slow ones down, for long contexts. */
static void plan_rotation(model *m)
{
    const json *rope = json_get(m->config, "rope_scaling");
    const json *parameters = json_get(m->config, "rope_parameters");
    rope = rope ? rope : parameters;
    double base = json_number(m->config, "rope_theta", json_number(parameters, "rope_theta", 10000));
    const char *type = *json_text(rope, "rope_type") ? json_text(rope, "rope_type") : json_text(rope, "type");
    double factor = json_number(rope, "factor", 1), low = json_number(rope, "low_freq_factor", 1),
           high = json_number(rope, "high_freq_factor", 4),
           trained = json_number(rope, "original_max_position_embeddings", 8192);
    bool is_llama3 = strcmp(type, "llama3") == 0, is_linear = strcmp(type, "linear") == 0;
    if (*type && !is_llama3 && !is_linear && strcmp(type, "default") != 0)
        die("config.json: rope type %s is not supported; llama3, linear and default are", type);
    m->frequencies = allocate(m->head_dim / 2, sizeof(float));
    for (uint32_t i = 0; i < m->head_dim / 2; i++) {
        double frequency = pow(base, -2.0 * i / m->head_dim);
        double wave = 2 * 3.14159265358979323846 / frequency, smooth = (trained / wave - low) / (high - low);
        if (is_linear || (is_llama3 && wave > trained / low))
            frequency /= factor;
        else if (is_llama3 && wave >= trained / high)
            frequency *= (1 - smooth) / factor + smooth;
        m->frequencies[i] = (float)frequency;
    }
}

static void read_config(model *m, model_opts opts)
{
    static const char *const supported[] = { "llama", "mistral", "qwen2", "qwen3" };
    const char *type = json_text(m->config, "model_type"), *activation = json_text(m->config, "hidden_act");
    bool known = false;
    for (size_t i = 0; i < 4; i++)
        known |= strcmp(type, supported[i]) == 0;
    if (!known)
        die("config.json: model type \"%s\" is not supported; llama, mistral, qwen2 and qwen3 are", type);
    if (*activation && strcmp(activation, "silu") != 0)
        die("config.json: activation %s is not supported; silu is", activation);
    m->hidden = config_count(m, "hidden_size", 0);
    m->ffn = config_count(m, "intermediate_size", 0);
    m->layer_count = config_count(m, "num_hidden_layers", 0);
    m->heads = config_count(m, "num_attention_heads", 0);
    m->kv_heads = config_count(m, "num_key_value_heads", m->heads);
    m->head_dim = config_count(m, "head_dim", m->hidden / m->heads);
    m->vocab = config_count(m, "vocab_size", 0);
    m->context = config_count(m, "max_position_embeddings", 2048);
    m->norm_eps = (float)json_number(m->config, "rms_norm_eps", 1e-6);
    if (m->heads % m->kv_heads != 0 || m->head_dim % 2 != 0)
        die("config.json: %u heads for %u key heads of %u elements", m->heads, m->kv_heads, m->head_dim);
    if (opts.context > m->context)
        die("the model was trained for %u tokens, %u requested", m->context, opts.context);
    m->context = opts.context ? opts.context : m->context < 4096 ? m->context : 4096;
    plan_rotation(m);
}

/* One number or a list of them. */
static void read_ends(model *m)
{
    const json *generation = json_section(m->file, COFFER_MCF_GENERATION_CONFIG);
    const json *ends = json_get(generation, "eos_token_id");
    ends = ends ? ends : json_get(m->config, "eos_token_id");
    const json *end = ends && ends->kind == JSON_LIST ? ends->first : ends;
    for (; end && m->end_count < 8; end = ends->kind == JSON_LIST ? end->next : NULL)
        m->ends[m->end_count++] = (int)end->number;
}

model *model_open(const coffer_mcf *file, model_opts opts)
{
    model *m = allocate(1, sizeof *m);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_quant_workers_opts worker_opts = COFFER_QUANT_WORKERS_OPTS_INIT;
    m->file = file;
    m->config = json_section(file, COFFER_MCF_CONFIG);
    if (!m->config)
        die("the file has no config.json: pack the whole folder of the model with `coffer pack`");
    read_config(m, opts);
    read_ends(m);
    worker_opts.threads = opts.threads;
    coffer_quant_product_opts_init(&m->product_opts, sizeof m->product_opts);
    m->product_opts.inputs = opts.exact ? COFFER_QUANT_INPUTS_F32 : COFFER_QUANT_INPUTS_INT8;
    m->product_opts.by_vector = true;
    if (coffer_quant_workers_new(&m->product_opts.workers, &worker_opts, &err))
        die("%s", err.text);
    m->embedding = load_matrix(m, "", "model.embed_tokens.weight", m->vocab, m->hidden);
    m->output = find(m, "lm_head.weight", false) == COFFER_INDEX_NONE
                    ? m->embedding
                    : load_matrix(m, "", "lm_head.weight", m->vocab, m->hidden);
    m->final_norm = load_vector(m, "", "model.norm.weight", m->hidden, true);
    m->layers = allocate(m->layer_count, sizeof *m->layers);
    for (uint32_t i = 0; i < m->layer_count; i++)
        load_layer(m, &m->layers[i], i);
    size_t q_size = (size_t)m->heads * m->head_dim, kv_size = (size_t)m->kv_heads * m->head_dim;
    m->x = allocate(MAX_BATCH * (size_t)m->hidden, sizeof(float));
    m->normed = allocate(MAX_BATCH * (size_t)m->hidden, sizeof(float));
    m->q = allocate(MAX_BATCH * q_size, sizeof(float));
    m->k = allocate(MAX_BATCH * kv_size, sizeof(float));
    m->v = allocate(MAX_BATCH * kv_size, sizeof(float));
    m->mixed = allocate(MAX_BATCH * q_size, sizeof(float));
    m->gate = allocate(MAX_BATCH * (size_t)m->ffn, sizeof(float));
    m->up = allocate(MAX_BATCH * (size_t)m->ffn, sizeof(float));
    m->cosines = allocate(MAX_BATCH * (size_t)m->head_dim / 2, sizeof(float));
    m->sines = allocate(MAX_BATCH * (size_t)m->head_dim / 2, sizeof(float));
    m->scores = allocate(m->context, sizeof(float));
    m->logits = allocate(m->vocab, sizeof(float));
    return m;
}

uint32_t model_context(const model *m)
{
    return m->context;
}

uint32_t model_vocab_size(const model *m)
{
    return m->vocab;
}

bool model_is_end(const model *m, int token)
{
    for (size_t i = 0; i < m->end_count; i++) {
        if (m->ends[i] == token)
            return true;
    }
    return false;
}

/* ---- Computing: a batch is `count` vectors, one after the other ---- */

static float dot(const float *a, const float *b, size_t length)
{
    float sums[16] = { 0 }, sum = 0; /* side by side, so that the compiler uses vectors */
    size_t i = 0;
    for (; i + 16 <= length; i += 16) {
        for (size_t j = 0; j < 16; j++)
            sums[j] += a[i + j] * b[i + j];
    }
    for (; i < length; i++)
        sum += a[i] * b[i];
    for (size_t j = 0; j < 16; j++)
        sum += sums[j];
    return sum;
}

static void multiply(const model *m, float *out, const matrix *w, const float *x, size_t count,
                     const float *bias)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (w->floats) {
        for (size_t row = 0; row < w->rows; row++) {
            for (size_t i = 0; i < count; i++)
                out[i * w->rows + row] = dot(w->floats + row * w->cols, x + i * w->cols, w->cols);
        }
    } else if (count == 1
                   ? coffer_quant_matvec(out, &w->quantized, x, &m->product_opts, &err)
                   : coffer_quant_matmul(out, &w->quantized, x, (uint32_t)count, &m->product_opts, &err)) {
        die("%s", err.text);
    }
    for (size_t i = 0; bias && i < count * w->rows; i++)
        out[i] += bias[i % w->rows];
}

static void normalize(const model *m, float *out, const float *x, const float *weights, size_t length)
{
    float scale = 1.0f / sqrtf(dot(x, x, length) / (float)length + m->norm_eps);
    for (size_t i = 0; i < length; i++)
        out[i] = x[i] * scale * weights[i];
}

static void plan_positions(model *m, size_t count)
{
    size_t half = m->head_dim / 2;
    for (size_t i = 0; i < count * half; i++) {
        float angle = (float)(m->position + i / half) * m->frequencies[i % half];
        m->cosines[i] = cosf(angle);
        m->sines[i] = sinf(angle);
    }
}

/* Norms, where the model has them, and rotates the heads of token `number` of the batch. */
static void place_heads(const model *m, float *heads, uint32_t count, const float *weights, size_t number)
{
    size_t half = m->head_dim / 2;
    const float *cosines = m->cosines + number * half, *sines = m->sines + number * half;
    for (float *head = heads; head < heads + (size_t)count * m->head_dim; head += m->head_dim) {
        if (weights)
            normalize(m, head, head, weights, m->head_dim);
        for (size_t i = 0; i < half; i++) {
            float a = head[i], b = head[i + half];
            head[i] = a * cosines[i] - b * sines[i];
            head[i + half] = b * cosines[i] + a * sines[i];
        }
    }
}

/* One head of a token: the values of all positions up to its own, weighted by their keys. */
static void attend(const model *m, const layer *l, float *out, const float *query, uint32_t head,
                   uint32_t position)
{
    size_t kv_size = (size_t)m->kv_heads * m->head_dim;
    size_t offset = (size_t)(head / (m->heads / m->kv_heads)) * m->head_dim;
    float scale = 1.0f / sqrtf((float)m->head_dim), largest = -INFINITY, sum = 0;
    for (uint32_t i = 0; i <= position; i++) {
        m->scores[i] = dot(query, l->keys + i * kv_size + offset, m->head_dim) * scale;
        largest = m->scores[i] > largest ? m->scores[i] : largest;
    }
    for (uint32_t i = 0; i <= position; i++) {
        m->scores[i] = expf(m->scores[i] - largest);
        sum += m->scores[i];
    }
    memset(out, 0, m->head_dim * sizeof *out);
    for (uint32_t i = 0; i <= position; i++) {
        const float *value = l->values + i * kv_size + offset;
        float weight = m->scores[i] / sum;
        for (size_t j = 0; j < m->head_dim; j++)
            out[j] += weight * value[j];
    }
}

static void compute_attention(model *m, layer *l, size_t count)
{
    size_t q_size = (size_t)m->heads * m->head_dim, kv_size = (size_t)m->kv_heads * m->head_dim;
    for (size_t i = 0; i < count; i++)
        normalize(m, m->normed + i * m->hidden, m->x + i * m->hidden, l->attention_norm, m->hidden);
    multiply(m, m->q, &l->q, m->normed, count, l->q_bias);
    multiply(m, m->k, &l->k, m->normed, count, l->k_bias);
    multiply(m, m->v, &l->v, m->normed, count, l->v_bias);
    for (size_t i = 0; i < count; i++) {
        place_heads(m, m->q + i * q_size, m->heads, l->q_norm, i);
        place_heads(m, m->k + i * kv_size, m->kv_heads, l->k_norm, i);
    }
    memcpy(l->keys + m->position * kv_size, m->k, count * kv_size * sizeof(float));
    memcpy(l->values + m->position * kv_size, m->v, count * kv_size * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        for (uint32_t head = 0; head < m->heads; head++) {
            size_t offset = i * q_size + (size_t)head * m->head_dim;
            attend(m, l, m->mixed + offset, m->q + offset, head, m->position + (uint32_t)i);
        }
    }
    multiply(m, m->normed, &l->o, m->mixed, count, NULL);
    for (size_t i = 0; i < count * m->hidden; i++)
        m->x[i] += m->normed[i];
}

static void compute_ffn(model *m, layer *l, size_t count)
{
    for (size_t i = 0; i < count; i++)
        normalize(m, m->normed + i * m->hidden, m->x + i * m->hidden, l->ffn_norm, m->hidden);
    multiply(m, m->gate, &l->gate, m->normed, count, NULL);
    multiply(m, m->up, &l->up, m->normed, count, NULL);
    for (size_t i = 0; i < count * m->ffn; i++)
        m->gate[i] = m->gate[i] / (1.0f + expf(-m->gate[i])) * m->up[i];
    multiply(m, m->normed, &l->down, m->gate, count, NULL);
    for (size_t i = 0; i < count * m->hidden; i++)
        m->x[i] += m->normed[i];
}

static void embed(const model *m, float *out, int token)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (token < 0 || (uint32_t)token >= m->vocab)
        die("token %d is outside of the model's %u", token, m->vocab);
    if (m->embedding.floats)
        memcpy(out, m->embedding.floats + (size_t)token * m->hidden, m->hidden * sizeof *out);
    else if (coffer_quant_decode(out, COFFER_DTYPE_F32, &m->embedding.quantized, (uint64_t)token, 1, &err))
        die("%s", err.text);
}

const float *model_forward(model *m, const int *tokens, size_t count)
{
    if (count == 0 || count > m->context - m->position)
        die("%zu tokens do not fit: %u of %u are used", count, m->position, m->context);
    for (size_t done = 0, now; done < count; done += now) {
        now = count - done < MAX_BATCH ? count - done : MAX_BATCH;
        for (size_t i = 0; i < now; i++)
            embed(m, m->x + i * m->hidden, tokens[done + i]);
        plan_positions(m, now);
        for (uint32_t i = 0; i < m->layer_count; i++) {
            compute_attention(m, &m->layers[i], now);
            compute_ffn(m, &m->layers[i], now);
        }
        m->position += (uint32_t)now;
        if (done + now == count) {
            normalize(m, m->normed, m->x + (now - 1) * m->hidden, m->final_norm, m->hidden);
            multiply(m, m->logits, &m->output, m->normed, 1, NULL);
        }
    }
    return m->logits;
}

void model_close(model *m)
{
    coffer_quant_workers_free(m->product_opts.workers);
}
