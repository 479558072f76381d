/* Snapshots of a Python heap: every object that the garbage collector knows or can reach, with its type, its
 * size and what it refers to. Nothing of this happens inside an allocation: a hook only asks the interpreter
 * to call back between two instructions, where its lock is held and every object is complete. While the
 * objects are walked no Python code runs, so none of them goes away. */
#include "record/record_thread.h"

#include <dlfcn.h>
#include <string.h>

typedef struct object object;
typedef int visit_function(object *referent, void *context);

/* Offsets in the structs of objects and types: the same from 3.9 to 3.13. */
enum {
    OBJECT_TYPE = 8,
    TYPE_NAME = 24,
    TYPE_BASIC_SIZE = 32,
    TYPE_FLAGS = 168,
    TYPE_TRAVERSE = 184,
    COLLECTOR_HEAD = 16
};
#define TYPE_IS_TEXT (1UL << 28)
#define TYPE_IS_DICT (1UL << 29)

/* Names of references are keys of dictionaries: data, so their number is limited. */
enum { NAME_BYTES_MAX = 200, KEY_NAMES_MAX = 100000, FIRST_ROWS = 1 << 16 };

static struct {
    int (*add_pending_call)(int (*)(void *), void *);
    int (*is_initialized)(void);
    int (*holds_lock)(void);
    object *(*import)(const char *);
    object *(*call_method)(object *, const char *, const char *, ...);
    ptrdiff_t (*list_size)(object *);
    object *(*list_item)(object *, ptrdiff_t);
    void (*release)(object *);
    void (*clear_error)(void);
    int (*is_collected)(object *);
    size_t (*size_of)(object *);
    object *(*type_lookup)(object *, object *);
    object *(*text)(const char *);
    int (*dict_next)(object *, ptrdiff_t *, object **, object **);
    object *(*modules)(void);
    object *(*builtins)(void);
    const void *method_type;
    void (*visit_all)(visit_function *, void *); /* since 3.12; NULL before */
    bool known;                                  /* all others were found */
} python;

static _Atomic uint32_t taking, snapshot_count, name_count;

void coffer__record_snapshot_attach(void)
{
    static const struct {
        void *place;
        const char *name;
    } functions[] = {
        { &python.add_pending_call, "Py_AddPendingCall" },
        { &python.is_initialized, "Py_IsInitialized" },
        { &python.holds_lock, "PyGILState_Check" },
        { &python.import, "PyImport_ImportModule" },
        { &python.call_method, "PyObject_CallMethod" },
        { &python.list_size, "PyList_Size" },
        { &python.list_item, "PyList_GetItem" },
        { &python.release, "Py_DecRef" },
        { &python.clear_error, "PyErr_Clear" },
        { &python.is_collected, "PyObject_IS_GC" },
        { &python.size_of, "_PySys_GetSizeOf" },
        { &python.type_lookup, "_PyType_Lookup" },
        { &python.text, "PyUnicode_InternFromString" },
        { &python.dict_next, "PyDict_Next" },
        { &python.modules, "PyImport_GetModuleDict" },
        { &python.builtins, "PyEval_GetBuiltins" },
        { &python.method_type, "PyMethodDescr_Type" },
    };
    bool known = true;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = dlsym(RTLD_DEFAULT, functions[i].name);
        known = known && found;
        memcpy(functions[i].place, &found, sizeof found);
    }
    python.known = known;
    *(void **)&python.visit_all = dlsym(RTLD_DEFAULT, "PyUnstable_GC_VisitObjects");
}

/* ---- Asking ---- */

static int take_pending(void *context)
{
    (void)context;
    coffer__record_snapshot_take();
    atomic_fetch_add(&coffer__record_session_here()->snapshots_answered, 1);
    return 0; /* an error here would be raised in the program */
}

/* The request stays until the interpreter runs and its queue has room. */
void coffer__record_snapshot_ask(coffer__record_session *mine)
{
    uint32_t asked = atomic_load(&mine->snapshots_asked), wanted = atomic_load(&mine->snapshots_wanted);
    if (asked == wanted || !python.known || !python.is_initialized() ||
        !atomic_compare_exchange_strong(&mine->snapshots_asked, &asked, asked + 1))
        return;
    if (python.add_pending_call(take_pending, NULL) != 0)
        atomic_fetch_sub(&mine->snapshots_asked, 1);
}

/* ---- Tables of addresses ---- */

typedef struct table {
    uint64_t *keys;   /* 0 = empty */
    uint32_t *values; /* NULL: a set */
    size_t capacity, count;
} table;

typedef struct walk {
    coffer__record_thread *thread;
    table seen, names;
    object **queue; /* objects in the order in which they were found */
    size_t queue_len, queue_capacity;
    object *size_method; /* the text "__sizeof__" */
    size_t key_names;
    object *dict; /* the dictionary that is being walked, or NULL, and its next entry */
    object *key, *value;
    ptrdiff_t place;
    bool failed; /* no memory, or recording has ended */
} walk;

static bool is_in(size_t *at, const table *rows, uint64_t key)
{
    uint64_t hash = (key >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    for (*at = (size_t)(hash >> 20) & (rows->capacity - 1); rows->keys[*at] != 0;
         *at = (*at + 1) & (rows->capacity - 1))
        if (rows->keys[*at] == key)
            return true;
    return false;
}

static void free_table(table *rows)
{
    coffer__record_unmap(rows->keys, rows->capacity * sizeof *rows->keys);
    coffer__record_unmap(rows->values, rows->capacity * sizeof *rows->values);
    *rows = (table){ 0 };
}

static bool make_table(table *out, size_t capacity, bool with_values)
{
    *out = (table){ .capacity = capacity };
    out->keys = coffer__record_map(capacity * sizeof *out->keys);
    out->values = with_values ? coffer__record_map(capacity * sizeof *out->values) : NULL;
    if (out->keys && (out->values || !with_values))
        return true;
    free_table(out);
    return false;
}

static bool has_room(table *rows)
{
    table larger;
    size_t at;
    if (2 * (rows->count + 1) <= rows->capacity)
        return true;
    if (!make_table(&larger, 2 * rows->capacity, rows->values))
        return false;
    for (size_t i = 0; i < rows->capacity; i++) {
        if (rows->keys[i] == 0 || is_in(&at, &larger, rows->keys[i]))
            continue;
        larger.keys[at] = rows->keys[i];
        if (rows->values)
            larger.values[at] = rows->values[i];
    }
    larger.count = rows->count;
    free_table(rows);
    *rows = larger;
    return true;
}

/* ---- Objects ---- */

static uint64_t word_at(const void *start, size_t offset)
{
    uint64_t word;
    memcpy(&word, (const char *)start + offset, sizeof word);
    return word;
}

static object *type_of(const object *it)
{
    return (object *)(uintptr_t)word_at(it, OBJECT_TYPE);
}

static void find(walk *work, object *it)
{
    size_t at;
    if (is_in(&at, &work->seen, (uintptr_t)it))
        return;
    if (work->queue_len == work->queue_capacity) {
        object **larger = coffer__record_map(2 * work->queue_capacity * sizeof *larger);
        if (!larger) {
            work->failed = true;
            return;
        }
        memcpy(larger, work->queue, work->queue_len * sizeof *larger);
        coffer__record_unmap(work->queue, work->queue_capacity * sizeof *larger);
        work->queue = larger;
        work->queue_capacity *= 2;
    }
    work->queue[work->queue_len++] = it;
    work->seen.keys[at] = (uintptr_t)it;
    work->seen.count++;
    work->failed = work->failed || !has_room(&work->seen);
}

static uint32_t put_name(walk *work, const void *key, const char *text, size_t len)
{
    size_t at;
    if (is_in(&at, &work->names, (uintptr_t)key))
        return work->names.values[at];
    uint32_t number = atomic_fetch_add(&name_count, 1) + 1, words = (uint32_t)(2 + (len + 7) / 8);
    if (!has_room(&work->names) || !coffer__record_reserve(work->thread, words + 1)) {
        work->failed = true;
        return 0;
    }
    coffer__record_put(work->thread, (uint64_t)words << 8 | COFFER__RECORD_NAME);
    coffer__record_put(work->thread, number);
    coffer__record_put(work->thread, len);
    coffer__record_put_text(work->thread, text, len);
    is_in(&at, &work->names, (uintptr_t)key);
    work->names.keys[at] = (uintptr_t)key;
    work->names.values[at] = number;
    work->names.count++;
    return number;
}

static uint32_t name_of_type(walk *work, const object *type)
{
    const char *text = (const char *)(uintptr_t)word_at(type, TYPE_NAME);
    return put_name(work, type, text, strnlen(text, NAME_BYTES_MAX));
}

/* The key of a dictionary, when the referent is the value that comes next in it. */
static uint32_t name_of_reference(walk *work, const object *referent)
{
    char text[NAME_BYTES_MAX];
    if (!work->dict || referent != work->value)
        return 0;
    const object *key = work->key;
    if (!python.dict_next(work->dict, &work->place, &work->key, &work->value))
        work->dict = NULL;
    if (!(word_at(type_of(key), TYPE_FLAGS) & TYPE_IS_TEXT) || work->key_names >= KEY_NAMES_MAX)
        return 0;
    size_t before = work->names.count, len = coffer__record_python_text(text, sizeof text, key);
    uint32_t number = len < sizeof text ? put_name(work, key, text, len) : 0;
    work->key_names += work->names.count - before;
    return number;
}

static void put_reference(walk *work, const object *to, uint32_t name)
{
    if (!coffer__record_reserve(work->thread, 3)) {
        work->failed = true;
        return;
    }
    coffer__record_put(work->thread, work->thread->time << 8 | COFFER__RECORD_REFERENCE);
    coffer__record_put(work->thread, (uintptr_t)to);
    coffer__record_put(work->thread, name);
}

static int visit(object *referent, void *context)
{
    walk *work = context;
    if (work->failed)
        return 1;
    put_reference(work, referent, name_of_reference(work, referent));
    find(work, referent);
    return work->failed;
}

/* The size that sys.getsizeof gives. A __sizeof__ that is written in Python is not called, since it could
 * change the heap: such an object has the size of its struct. */
static size_t size_of(const walk *work, object *it)
{
    object *type = type_of(it), *method = python.type_lookup(type, work->size_method);
    size_t head = python.is_collected(it) ? COLLECTOR_HEAD : 0;
    if (!method || (const void *)type_of(method) != python.method_type)
        return head + (size_t)word_at(type, TYPE_BASIC_SIZE);
    size_t size = python.size_of(it);
    if (size == SIZE_MAX)
        python.clear_error();
    return size == SIZE_MAX ? head + (size_t)word_at(type, TYPE_BASIC_SIZE) : size;
}

static bool begin_object(walk *work, const void *address, uint64_t size, uint32_t name)
{
    if (work->failed || !coffer__record_reserve(work->thread, 4)) {
        work->failed = true;
        return false;
    }
    coffer__record_put(work->thread, work->thread->time << 8 | COFFER__RECORD_OBJECT);
    coffer__record_put(work->thread, (uintptr_t)address);
    coffer__record_put(work->thread, size);
    coffer__record_put(work->thread, name);
    return true;
}

static void put_object(walk *work, object *it)
{
    size_t size = size_of(work, it); /* before the thread is busy: it may allocate */
    object *type = type_of(it);
    bool traversed = python.is_collected(it) && word_at(type, TYPE_TRAVERSE);
    if (!coffer__record_enter(work->thread)) {
        work->failed = true;
        return;
    }
    coffer__record_begin(work->thread);
    if (begin_object(work, it, size, name_of_type(work, type)) && traversed) {
        int (*traverse)(object *, visit_function *, void *);
        uint64_t address = word_at(type, TYPE_TRAVERSE);
        memcpy(&traverse, &address, sizeof traverse);
        work->place = 0;
        work->dict = word_at(type, TYPE_FLAGS) & TYPE_IS_DICT ? it : NULL;
        if (work->dict && !python.dict_next(it, &work->place, &work->key, &work->value))
            work->dict = NULL;
        traverse(it, visit, work);
    }
    coffer__record_publish(work->thread);
    coffer__record_end(work->thread);
    coffer__record_leave(work->thread);
}

/* An object for what the interpreter itself keeps alive. Everything else that nothing refers to is used by
 * running code. */
static void put_roots(walk *work)
{
    static const char roots_name[] = "(interpreter)", modules_name[] = "sys.modules",
                      builtins_name[] = "builtins";
    object *modules = python.modules(), *builtins = python.builtins();
    if (!coffer__record_enter(work->thread)) {
        work->failed = true;
        return;
    }
    coffer__record_begin(work->thread);
    uint32_t name = put_name(work, roots_name, roots_name, sizeof roots_name - 1);
    if (begin_object(work, &python, 2 * sizeof(void *), name)) {
        if (modules)
            put_reference(work, modules, put_name(work, modules_name, modules_name, sizeof modules_name - 1));
        if (builtins)
            put_reference(work, builtins,
                          put_name(work, builtins_name, builtins_name, sizeof builtins_name - 1));
    }
    coffer__record_publish(work->thread);
    coffer__record_end(work->thread);
    coffer__record_leave(work->thread);
    if (modules)
        find(work, modules);
    if (builtins)
        find(work, builtins);
}

/* ---- A snapshot ---- */

static bool put_snapshot(walk *work, uint32_t number, bool ends)
{
    coffer__record_thread *thread = work->thread;
    if (!coffer__record_enter(thread))
        return false;
    bool room = coffer__record_reserve(thread, 2);
    if (room) {
        coffer__record_begin(thread);
        thread->time = coffer__record_now();
        coffer__record_put(thread, thread->time << 8 | COFFER__RECORD_SNAPSHOT);
        coffer__record_put(thread, (uint64_t)number << 1 | ends);
        coffer__record_publish(thread);
        coffer__record_end(thread);
    }
    coffer__record_leave(thread);
    return room;
}

/* A list of the objects that the collector knows, for interpreters that cannot visit them without one. */
static object *list_objects(void)
{
    object *collector = python.import("gc"), *list = NULL;
    if (collector) {
        list = python.call_method(collector, "get_objects", NULL);
        python.release(collector);
    }
    if (!list)
        python.clear_error();
    return list;
}

static int find_next(object *it, void *context)
{
    walk *work = context;
    find(work, it);
    return !work->failed;
}

/* list : NULL when the interpreter can visit all objects. */
static void walk_objects(walk *work, object *list)
{
    uint32_t number = atomic_fetch_add(&snapshot_count, 1) + 1;
    ptrdiff_t count = list ? python.list_size(list) : 0;
    if (!put_snapshot(work, number, false)) {
        work->failed = true;
        return;
    }
    put_roots(work);
    if (!list)
        python.visit_all(find_next, work);
    for (ptrdiff_t i = 0; i < count && !work->failed; i++)
        find(work, python.list_item(list, i));
    for (size_t i = 0; i < work->queue_len && !work->failed; i++)
        put_object(work, work->queue[i]);
    if (!work->failed)
        work->failed = !put_snapshot(work, number, true);
}

bool coffer__record_snapshot_take(void)
{
    walk work = { .thread = &coffer__record_self, .queue_capacity = FIRST_ROWS };
    uint32_t idle = 0;
    if (!coffer__record_shared || !python.known || !python.is_initialized() || !python.holds_lock() ||
        !atomic_compare_exchange_strong(&taking, &idle, 1))
        return false;
    object *list = python.visit_all ? NULL : list_objects();
    work.size_method = python.text("__sizeof__");
    work.queue = coffer__record_map(work.queue_capacity * sizeof(object *));
    work.failed = (!list && !python.visit_all) || !work.size_method || !work.queue ||
                  !make_table(&work.seen, FIRST_ROWS, false) || !make_table(&work.names, FIRST_ROWS, true);
    if (!work.failed)
        walk_objects(&work, list);
    if (list)
        python.release(list);
    if (work.size_method)
        python.release(work.size_method);
    else
        python.clear_error();
    coffer__record_unmap(work.queue, work.queue_capacity * sizeof(object *));
    free_table(&work.seen);
    free_table(&work.names);
    atomic_store(&taking, 0);
    return !work.failed;
}
