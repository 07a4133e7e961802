/* SPDX-License-Identifier: Apache-2.0 */
#include "model/segment/cut.h"

#include "base/tensor_name.h"

/* Makes the segment: storages, then inputs with copies in, the ops, copies out with outputs, units,
 * and at last the arena. */

static void cut_deinit(struct mdl_cut *k)
{
    mdl_border_deinit(&k->front);
    mdl_border_deinit(&k->back);
    free(k->uses);
    free(k->before);
    free(k->now);
    mdl_free(k->m);
}

/* ---- memory of the segment: never NULL, for a shortage leaves (mdl_cut.short_of_memory) ---- */

static void *made(struct mdl_cut *k, void *memory)
{
    if (!memory) {
        longjmp(k->short_of_memory, 1);
    }
    return memory;
}

static void *room_for(struct mdl_cut *k, size_t count, size_t size)
{
    return made(k, mdl_pool_alloc(k->pool, count, size));
}

static char *text_of(struct mdl_cut *k, const char *text)
{
    return made(k, mdl_pool_strdup(k->pool, text));
}

/* ---- storages and tensors ---- */

static size_t add_storage(struct mdl_cut *k, enum mdl_home home, size_t bytes, size_t index)
{
    k->m->storages[k->m->storage_count] = (struct mdl_storage){
        .home = home, .bytes = bytes, .index = index, .first_op = SIZE_MAX, .last_op = 0};
    return k->m->storage_count++;
}

static size_t live_at(const struct mdl_border *b, size_t storage)
{
    for (size_t i = 0; i < b->count; i++) {
        if (b->live[i].t.storage == storage) {
            return i;
        }
    }
    return MDL_NONE;
}

static void add_constant(struct mdl_cut *k, size_t storage)
{
    const struct mdl_storage *s = &k->whole->storages[storage];
    struct mdl_storage *to = &k->m->storages[add_storage(k, MDL_HOME_CONST, s->bytes, 0)];

    to->data = s->data;
    if (s->bytes > 0 && !mdl_map_has(k->m->private->map, s->data)) {
        to->data = made(k, mdl_pool_memdup(k->pool, s->data, s->bytes));
    }
}

static void add_storages(struct mdl_cut *k)
{
    for (size_t i = 0; i < k->whole->storage_count; i++) {
        const struct mdl_storage *s = &k->whole->storages[i];
        struct mdl_use *u = &k->uses[i];
        size_t front = live_at(&k->front, i), back = live_at(&k->back, i);

        u->before = u->now = MDL_NONE;
        if (u->split_op != MDL_NONE) {
            u->before = add_storage(k, MDL_HOME_INPUT, s->bytes, front);
        }
        if (u->place == MDL_PLACE_NONE) {
            continue;
        }
        u->now = k->m->storage_count;
        if (u->place == MDL_PLACE_CONST) {
            add_constant(k, i);
        } else {
            add_storage(k,
                        u->place == MDL_PLACE_ARENA   ? MDL_HOME_ARENA
                        : u->place == MDL_PLACE_INPUT ? MDL_HOME_INPUT
                                                      : MDL_HOME_OUTPUT,
                        s->bytes,
                        u->place == MDL_PLACE_INPUT    ? front
                        : u->place == MDL_PLACE_OUTPUT ? back
                                                       : 0);
        }
    }
}

static size_t add_tensor(struct mdl_cut *k, const struct mdl_tensor *t)
{
    struct mdl_tensor *to = &k->m->tensors[k->m->tensor_count];

    *to = *t;
    to->name = text_of(k, t->name);
    return k->m->tensor_count++;
}

/* Finds or makes the tensor that op @op of the whole reads (@reads) or writes as @tensor. */
static size_t take_tensor(struct mdl_cut *k, size_t tensor, size_t op, bool reads)
{
    const struct mdl_use *u;
    struct mdl_tensor t;
    size_t *at;

    if (tensor == MDL_NONE) {
        return MDL_NONE;
    }
    t = k->whole->tensors[tensor];
    u = &k->uses[t.storage];
    if (u->split_op != MDL_NONE && (op < u->split_op || (op == u->split_op && reads))) {
        at = &k->before[tensor];
        t.storage = u->before;
    } else {
        at = &k->now[tensor];
        t.storage = u->now;
    }
    if (*at == MDL_NONE) {
        *at = add_tensor(k, &t);
    }
    return *at;
}

/* ---- inputs, outputs and their copies ---- */

/* A live tensor in @storage of the segment: as it lies in the whole's, or dense. */
static size_t add_live_tensor(struct mdl_cut *k, const struct mdl_live *l, size_t storage,
                              bool dense)
{
    struct mdl_tensor t = l->t;

    t.storage = storage;
    if (dense) {
        t.offset = 0;
        memcpy(t.stride, l->dense, sizeof(t.stride));
    }
    return add_tensor(k, &t);
}

/* An input or output: its dims in the order that they have in memory, so that it is row-major. */
static struct mdl_io make_io(struct mdl_cut *k, const struct mdl_live *l, size_t storage)
{
    struct mdl_live rows = *l;
    size_t order[MDL_RANK_MAX];
    char shown[TENSOR_NAME_BYTES];

    mdl_memory_order(l->t.rank, l->t.dim, l->dense, order);
    for (size_t i = 0; i < l->t.rank; i++) {
        rows.t.dim[i] = l->t.dim[order[i]];
        rows.dense[i] = l->dense[order[i]];
    }
    return (struct mdl_io){.name = text_of(k, tensor_name(l->t.name, shown)),
                           .tensor = add_live_tensor(k, &rows, storage, true),
                           .bytes = l->bytes,
                           .entry_op = MDL_NONE};
}

static void add_copy(struct mdl_cut *k, const struct mdl_live *l, size_t from, bool from_dense,
                     size_t to, bool to_dense)
{
    struct mdl_op *op = &k->m->ops[k->m->op_count++];

    *op = (struct mdl_op){
        .kind = MDL_OP_COPY, .name = text_of(k, l->t.name), .residual_in = MDL_NONE};
    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        op->in[i] = MDL_NONE;
    }
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        op->out[i] = MDL_NONE;
    }
    op->in[0] = add_live_tensor(k, l, from, from_dense);
    op->out[0] = add_live_tensor(k, l, to, to_dense);
}

static void add_inputs(struct mdl_cut *k)
{
    for (size_t i = 0; i < k->front.count; i++) {
        const struct mdl_live *l = &k->front.live[i];
        const struct mdl_use *u = &k->uses[l->t.storage];
        size_t storage = u->split_op != MDL_NONE       ? u->before
                         : u->place == MDL_PLACE_INPUT ? u->now
                                                       : MDL_NONE;

        if (storage == MDL_NONE) {
            storage = add_storage(k, MDL_HOME_INPUT, l->bytes, i);
        }
        k->m->inputs[k->m->input_count++] = make_io(k, l, storage);
        if (u->copy_in) {
            add_copy(k, l, storage, true, u->now, false);
        }
    }
    k->m->private->copies_in = k->copies_in = k->m->op_count;
}

/* Copies tensor @at of the back border, which passes by, from the input that it came as: both
 * borders carry the same tensors of it. */
static void copy_past(struct mdl_cut *k, size_t at, size_t to)
{
    const struct mdl_live *l = &k->back.live[at];
    size_t nth = 0;

    for (size_t i = 0; i < at; i++) {
        nth += k->back.live[i].t.storage == l->t.storage;
    }
    for (size_t i = 0; i < k->front.count; i++) {
        if (k->front.live[i].t.storage == l->t.storage && nth-- == 0) {
            add_copy(k, l, k->m->tensors[k->m->inputs[i].tensor].storage, true, to, true);
            return;
        }
    }
}

static void add_outputs(struct mdl_cut *k)
{
    for (size_t i = 0; i < k->back.count; i++) {
        const struct mdl_live *l = &k->back.live[i];
        const struct mdl_use *u = &k->uses[l->t.storage];
        size_t storage = u->place == MDL_PLACE_OUTPUT ? u->now : MDL_NONE;

        if (storage == MDL_NONE) {
            storage = add_storage(k, MDL_HOME_OUTPUT, l->bytes, i);
        }
        k->m->outputs[k->m->output_count++] = make_io(k, l, storage);
        /* the last border is the whole's outputs */
        if (k->end_op == k->whole->op_count) {
            k->m->outputs[i].rows_output = k->whole->outputs[i].rows_output;
            k->m->outputs[i].rows_dim = k->whole->outputs[i].rows_dim;
        }
        if (u->passes_by) {
            copy_past(k, i, storage);
        } else if (u->copy_out) {
            add_copy(k, l, u->now, false, storage, true);
        }
    }
}

/* ---- ops ---- */

static void add_op(struct mdl_cut *k, size_t at)
{
    const struct mdl_op *from = &k->whole->ops[at];
    struct mdl_op *op = &k->m->ops[k->m->op_count++];

    *op = *from;
    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        op->in[i] = take_tensor(k, from->in[i], at, true);
    }
    op->residual_in = take_tensor(k, from->residual_in, at, true);
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        op->out[i] = take_tensor(k, from->out[i], at, false);
    }
    k->m->macs += op->macs;
    made(k, mdl_op_own(op, k->pool) ? op : NULL);
}

/* ---- the rest of the model ---- */

static void add_units(struct mdl_cut *k, size_t first, size_t last)
{
    const struct mdl_model *whole = k->whole;
    struct mdl_model *m = k->m;
    size_t back = k->first_op - k->copies_in; /* may wrap; so does the difference */

    for (size_t i = first; i <= last; i++) {
        struct mdl_unit *u = &m->units[m->unit_count++];

        *u = whole->units[i];
        u->name = text_of(k, u->name);
        u->first_op = i == first ? 0 : u->first_op - back;
        u->heavy_op -= back;
        u->last_op = i == last ? m->op_count - 1 : u->last_op - back;
        u->live_bytes = i == last ? 0 : u->live_bytes;
        m->weight_bytes += u->weight_bytes;
    }
    for (size_t i = 0; i < m->op_count; i++) {
        for (size_t n = 0; n < MDL_OP_OUT_MAX; n++) {
            const struct mdl_tensor *t =
                m->ops[i].out[n] == MDL_NONE ? NULL : &m->tensors[m->ops[i].out[n]];

            m->tensor_bytes += t ? mdl_elements(t) * mdl_dtype_bytes(t->dtype) : 0;
        }
    }
}

/* What the last segment returns is decoded as the whole's output. */
static void add_output(struct mdl_cut *k)
{
    const struct mdl_model *whole = k->whole;

    k->m->output = whole->output ? text_of(k, whole->output) : NULL;
    k->m->labels = whole->labels ? room_for(k, whole->label_count, sizeof(*k->m->labels)) : NULL;
    for (; whole->labels && k->m->label_count < whole->label_count; k->m->label_count++) {
        k->m->labels[k->m->label_count] = text_of(k, whole->labels[k->m->label_count]);
    }
}

static void copy_files(struct mdl_cut *k, const struct mdl_data_file *from, size_t count,
                       struct mdl_data_file *to)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
        to[i].path = from[i].path ? text_of(k, from[i].path) : NULL;
    }
}

static void describe(struct mdl_cut *k, size_t first, size_t last)
{
    const struct mdl_model *whole = k->whole;
    struct mdl_model *m = k->m;

    m->name = made(k, mdl_pool_printf(k->pool, "%s#%zu-%zu", whole->name, first, last));
    m->segment = room_for(k, 1, sizeof(*m->segment));
    *m->segment = (struct mdl_segment_of){
        .first_unit = first, .last_unit = last, .unit_count = whole->unit_count};
    memcpy(m->segment->front, k->front.hash, sizeof(m->segment->front));
    memcpy(m->segment->back, k->back.hash, sizeof(m->segment->back));
    memcpy(m->hash, whole->hash, sizeof(m->hash));
    snprintf(m->identity, sizeof(m->identity), "%.81s#%zu-%zu", whole->identity, first, last);
    m->preproc = first == 0 ? whole->preproc : (struct mdl_preproc){.std = {1, 1, 1, 1}};
    m->data_files = room_for(k, whole->data_file_count, sizeof(*m->data_files));
    m->data_file_count = whole->data_file_count;
    copy_files(k, whole->data_files, whole->data_file_count, m->data_files);
    copy_files(k, whole->side_files, MDL_SIDE_FILES, m->side_files);
    if (last + 1 == whole->unit_count) {
        add_output(k);
    }
}

static void make_room(struct mdl_cut *k)
{
    const struct mdl_model *whole = k->whole;
    size_t ios = k->front.count + k->back.count;

    k->m = made(k, mdl_model_new());
    k->pool = k->m->private->pool;
    k->m->private->map = mdl_map_use(whole->private->map);
    k->before = made(k, malloc((whole->tensor_count + 1) * sizeof(*k->before)));
    k->now = made(k, malloc((whole->tensor_count + 1) * sizeof(*k->now)));
    k->m->storages = room_for(k, 2 * whole->storage_count + ios, sizeof(*k->m->storages));
    k->m->tensors = room_for(k, 2 * whole->tensor_count + 3 * ios, sizeof(*k->m->tensors));
    k->m->ops = room_for(k, k->end_op - k->first_op + ios, sizeof(*k->m->ops));
    k->m->units = room_for(k, whole->unit_count, sizeof(*k->m->units));
    k->m->inputs = room_for(k, ios, sizeof(*k->m->inputs));
    k->m->outputs = room_for(k, ios, sizeof(*k->m->outputs));
    for (size_t i = 0; i < whole->tensor_count; i++) {
        k->before[i] = k->now[i] = MDL_NONE;
    }
}

/* Return: 0, -ENOMEM. */
static int try_segment(struct mdl_cut *k, size_t first, size_t last)
{
    if (setjmp(k->short_of_memory) != 0) {
        return -ENOMEM;
    }
    make_room(k);
    describe(k, first, last);
    add_storages(k);
    add_inputs(k);
    for (size_t i = k->first_op; i < k->end_op; i++) {
        add_op(k, i);
    }
    add_outputs(k);
    add_units(k, first, last);
    return 0;
}

static int make_segment(struct mdl_cut *k, size_t first, size_t last,
                        const struct mdl_segment_limits *limits, char *error)
{
    int r = mdl_cut_homes(k);

    r = r < 0 ? r : try_segment(k, first, last);
    if (r == 0 && limits->weight_bytes_max && k->m->weight_bytes > limits->weight_bytes_max) {
        return mdl_fail(error, -E2BIG, "%s: the weights are larger than %zu bytes", k->m->name,
                        limits->weight_bytes_max);
    }
    return r < 0 ? r : mdl_cut_place(k, limits->arena_bytes_max, error);
}

size_t mdl_segment_copies(const struct mdl_model *m)
{
    return m->private->copies_in;
}

int mdl_segment(const struct mdl_model *whole, size_t first, size_t last,
                const struct mdl_segment_limits *limits, char ret_error[MDL_ERROR_MAX],
                struct mdl_model **ret)
{
    static const struct mdl_segment_limits none;
    base_cleanup(cut_deinit) struct mdl_cut k = {.whole = whole};
    int r;

    ret_error[0] = '\0';
    if (whole->segment) {
        return mdl_fail(ret_error, -EINVAL, "%s is a segment; only a whole model can be cut",
                        whole->name);
    }
    if (first > last || last >= whole->unit_count) {
        return mdl_fail(ret_error, -EINVAL, "units %zu-%zu: %s has units 0-%zu", first, last,
                        whole->name, whole->unit_count - 1);
    }
    r = mdl_segment_check_leaves(whole, first, last, ret_error);
    if (r < 0) {
        return ret_error[0] ? r : mdl_fail(ret_error, r, "%s", strerror(-r));
    }
    k.first_op = whole->units[first].first_op;
    k.end_op = whole->units[last].last_op + 1;
    r = mdl_border(whole, first, &k.front);
    r = r < 0 ? r : mdl_border(whole, last + 1, &k.back);
    if (r == 0 && (k.front.count == 0 || k.back.count == 0)) {
        return mdl_fail(ret_error, -EOPNOTSUPP, "units %zu-%zu of %s: nothing is alive %s them",
                        first, last, whole->name, k.front.count == 0 ? "before" : "behind");
    }
    r = r < 0 ? r : make_segment(&k, first, last, limits ? limits : &none, ret_error);
    if (r < 0) {
        return ret_error[0] ? r : mdl_fail(ret_error, r, "%s", strerror(-r));
    }
    *ret = base_take(k.m);
    return 0;
}
