// Matrix products in 32 bits on the units of a card that multiply small matrices (generation 8.0 and later).
//
// These units read the first 11 binary places of a number. So every factor is split into them and what is left, x = x1 + x2, and a
// product is x1·y1 + x1·y2 + x2·y1: about 21 places, summed in 32 bits. Of a convolution no columns are ever
// written: what a column would hold is fetched from the image where it is needed.
//
// A block makes HIGH × WIDE numbers of c = a·b, each warp TALL × 32 of them. Sixteen terms of all its sums come into fast memory at
// once, while earlier ones are multiplied. Long sums are cut in pieces, blocks with another z, which `add_up` adds in one order.
#define DEEP 16
#define STAGES 3
// Numbers from one row to the next in fast memory, so that the 32 threads of a warp read from 32 banks.
#define ALONG (DEEP + 4)
#define ACROSS(count) ((count) + 8)
#define SIZE(count, along) ((along) ? (count) * ALONG : DEEP * ACROSS(count))

// Copies one number, or four, beside what goes on; 0 if they are not `there`.
__device__ void fetch(float *to, const float *from, bool there) {
    uint at = (uint)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(there ? 4 : 0));
}
__device__ void fetch_four(float *to, const float *from, bool there) {
    uint at = (uint)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(there ? 16 : 0));
}

// What is left of x behind the 11 binary places that a unit reads of it.
__device__ uint rest(float x) {
    return __float_as_uint(x - __uint_as_float(__float_as_uint(x) & 0xffffe000u));
}

__device__ void multiply_add(float (&c)[4], const uint (&a)[4], const uint (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Threads of a block.
#define THREADS(high, wide, tall) ((high) / (tall) * (wide))

// A matrix whose terms of one sum lie side by side: x[row][term]. A tile has COUNT rows, and a block T threads.
template <int COUNT, int T> struct Rows {
    const float *x;
    int left, stride;
    bool fours;

    __device__ Rows(const float *all, int first, int rows, int stride, int inner)
        : stride(stride), fours(stride % 4 == 0 && inner % 4 == 0 && (wide)all % 16 == 0) {
        // of the first number that a thread fetches: its row, and rows from there on
        int row = fours ? threadIdx.x / (DEEP / 4) : threadIdx.x / DEEP;
        x = all + (wide)(first + row) * stride + (fours ? threadIdx.x % (DEEP / 4) * 4 : threadIdx.x % DEEP);
        left = rows - first - row;
    }

    __device__ void load(float *tile, int term, int end) {
        if (fours) {
            constexpr int STEP = T / (DEEP / 4);
            bool there = term + (int)threadIdx.x % (DEEP / 4) * 4 < end;
            float *to = tile + threadIdx.x / (DEEP / 4) * ALONG + threadIdx.x % (DEEP / 4) * 4;
#pragma unroll
            for (int turn = 0; turn < COUNT / STEP; turn++)
                fetch_four(to + turn * STEP * ALONG, x + (term + turn * STEP * stride), there && turn * STEP < left);
        } else {
            constexpr int STEP = T / DEEP;
            bool there = term + (int)threadIdx.x % DEEP < end;
            float *to = tile + threadIdx.x / DEEP * ALONG + threadIdx.x % DEEP;
#pragma unroll
            for (int turn = 0; turn < COUNT / STEP; turn++)
                fetch(to + turn * STEP * ALONG, x + (term + turn * STEP * stride), there && turn * STEP < left);
        }
    }
};

// A matrix whose terms of one sum lie below each other: x[term][row].
template <int COUNT, int T> struct Columns {
    const float *x;
    int stride;
    bool fours, inside;

    __device__ Columns(const float *all, int first, int rows, int stride)
        : stride(stride), fours(stride % 4 == 0 && rows % 4 == 0 && (wide)all % 16 == 0) {
        int row = first + (fours ? threadIdx.x % (COUNT / 4) * 4 : threadIdx.x % COUNT);
        x = all + (wide)(fours ? threadIdx.x / (COUNT / 4) : threadIdx.x / COUNT) * stride + row;
        inside = row < rows;
    }

    __device__ void load(float *tile, int term, int end) {
        const float *from = x + (wide)term * stride;
        if (fours) {
            constexpr int STEP = T / (COUNT / 4);
            int k = threadIdx.x / (COUNT / 4), left = inside ? end - term - k : 0;
            float *to = tile + k * ACROSS(COUNT) + threadIdx.x % (COUNT / 4) * 4;
#pragma unroll
            for (int turn = 0; turn < DEEP / STEP; turn++)
                fetch_four(to + turn * STEP * ACROSS(COUNT), from + turn * STEP * stride, turn * STEP < left);
        } else {
            constexpr int STEP = T / COUNT;
            int k = threadIdx.x / COUNT, left = inside ? end - term - k : 0;
            float *to = tile + k * ACROSS(COUNT) + threadIdx.x % COUNT;
#pragma unroll
            for (int turn = 0; turn < DEEP / STEP; turn++)
                fetch(to + turn * STEP * ACROSS(COUNT), from + turn * STEP * stride, turn * STEP < left);
        }
    }
};

// An entry of a kernel: where it reads beside the place of its window, and (channel · 32 + which of the window's entries). Entry
// 31 is none; a whole tile of them ends the list, so that it can be read ahead.
struct __align__(8) Entry {
    int beside, which;
};
#define CHANNEL(entry) ((entry).which >> 5)
#define OF_WINDOW(entry) ((entry).which & 31)

// Columns of a convolution that are not there: x[term][place], a term for each entry of a kernel, from images of `inside` numbers
// for each channel. Of a transposed convolution if `back`: places are pixels of the image before, and kernels lie the other way.
template <int COUNT, int T> struct Windows {
    static constexpr int STEP = T / COUNT;
    const float *x;
    const int2 *entries;
    int inside;
    uint there;
    // those of the next tile, read ahead
    int2 next[DEEP / STEP];

    __device__ Windows(const float *all, const struct Entry *list, int first, uint n, struct Window w, bool back, int begin)
        : x(all), entries((const int2 *)list + threadIdx.x / COUNT), there(0) {
#pragma unroll
        for (int turn = 0; turn < DEEP / STEP; turn++) next[turn] = __ldg(entries + begin + turn * STEP);
        uint height = back ? w.out_height : w.height, width = back ? w.out_width : w.width;
        uint over = back ? w.width : w.out_width, places = over * (back ? w.height : w.out_height);
        uint at = first + threadIdx.x % COUNT;
        inside = n * height * width;
        if (at >= n * places) return;
        uint example = at / places, place = at - example * places, row = place / over, column = place - row * over;
        int y = back ? row + w.above : row * w.stride - w.above;
        int x0 = back ? column + w.left : column * w.stride - w.left;
        x += (int)(example * height * width) + y * (int)width + x0;
        for (int i = 0; i < w.kernel_height; i++)
            for (int j = 0; j < w.kernel_width; j++) {
                int yy = back ? y - i : y + i, xx = back ? x0 - j : x0 + j;
                there |= (uint)((uint)yy < height && (uint)xx < width) << (i * w.kernel_width + j);
            }
    }

    __device__ void load(float *tile, int term, int) {
        float *to = tile + threadIdx.x / COUNT * ACROSS(COUNT) + threadIdx.x % COUNT;
#pragma unroll
        for (int turn = 0; turn < DEEP / STEP; turn++) {
            int2 entry = next[turn];
            fetch(to + turn * STEP * ACROSS(COUNT), x + ((entry.y >> 5) * inside + entry.x), there >> (entry.y & 31) & 1);
            next[turn] = __ldg(entries + term + DEEP + turn * STEP);
        }
    }
};

// The same columns where a sum goes over places: x[entry of a kernel][term].
template <int COUNT, int T> struct Places {
    const float *x;
    struct Window w;
    int step, row, column, step_row, step_column;
    int beside[COUNT * DEEP / T];
    // bit i for row i of a window, bit 8 + j for its column j
    uint needs[COUNT * DEEP / T];

    __device__ Places(const float *all, const struct Entry *entries, int first, int cols, uint n, struct Window w, int begin) : w(w) {
        int places = w.out_height * w.out_width, at = begin + threadIdx.x % DEEP, example = at / places;
        row = (at - example * places) / w.out_width;
        column = at - example * places - row * w.out_width;
        x = all + (wide)example * (w.height * w.width);
        // a tile further
        step_column = DEEP % w.out_width;
        step_row = DEEP / w.out_width % w.out_height;
        step = DEEP / places * (w.height * w.width);
#pragma unroll
        for (int turn = 0; turn < COUNT * DEEP / T; turn++) {
            int col = first + threadIdx.x / DEEP + T / DEEP * turn;
            struct Entry entry = {0, 31};
            if (col < cols) entry = entries[col];
            int i = OF_WINDOW(entry) / w.kernel_width, j = OF_WINDOW(entry) - i * w.kernel_width;
            beside[turn] = CHANNEL(entry) * (int)(n * w.height * w.width) + entry.beside;
            needs[turn] = OF_WINDOW(entry) == 31 ? 1u << 31 : 1u << i | 256u << j;
        }
    }

    // Bits k for which `from + k` is one of `count` places.
    __device__ static uint within(int from, int count) {
        uint from_first = from < 0 ? 255u << -from : 255u;
        int last = count - from;
        return from_first & (last >= 8 ? 255u : (1u << max(last, 0)) - 1);
    }

    __device__ void load(float *tile, int term, int end) {
        int y = row * w.stride - w.above, x0 = column * w.stride - w.left;
        const float *from = x + (y * w.width + x0);
        uint there = term + (int)threadIdx.x % DEEP < end ? within(y, w.height) | within(x0, w.width) << 8 : 0;
        float *to = tile + threadIdx.x / DEEP * ALONG + threadIdx.x % DEEP;
#pragma unroll
        for (int turn = 0; turn < COUNT * DEEP / T; turn++)
            fetch(to + turn * (T / DEEP) * ALONG, from + beside[turn], (there & needs[turn]) == needs[turn]);
        column += step_column;
        row += step_row;
        x += step;
        if (column >= w.out_width) { column -= w.out_width; row += 1; }
        if (row >= w.out_height) { row -= w.out_height; x += w.height * w.width; }
    }
};

// Kernels of a transposed convolution: x[channel before][entry], a term for each entry of each channel behind.
template <int COUNT, int T> struct Kernels {
    const float *x;
    const int2 *entries;
    int left, window, stride;
    int2 next;

    __device__ Kernels(const float *all, const struct Entry *list, int first, int rows, int window, int begin)
        : entries((const int2 *)list + threadIdx.x % DEEP), window(window), stride(rows * window) {
        next = __ldg(entries + begin);
        int row = first + threadIdx.x / DEEP;
        x = all + row * window;
        left = rows - row;
    }

    __device__ void load(float *tile, int term, int) {
        constexpr int STEP = T / DEEP;
        int2 entry = next;
        next = __ldg(entries + term + DEEP);
        const float *from = x + ((entry.y >> 5) * stride + (entry.y & 31));
        float *to = tile + threadIdx.x / DEEP * ALONG + threadIdx.x % DEEP;
        bool there = (entry.y & 31) != 31;
#pragma unroll
        for (int turn = 0; turn < COUNT / STEP; turn++)
            fetch(to + turn * STEP * ALONG, from + turn * STEP * window, there && turn * STEP < left);
    }
};

// Where a product goes: rows × cols numbers, or a piece of their sums of `chunk` terms each.
struct Result {
    float *at;
    const float *bias; // of every row, or none
    int rows, cols, inner, chunk, add;
};

#define FIRST_ROW (blockIdx.y * HIGH)
#define FIRST_COL (blockIdx.x * WIDE)
#define FIRST_TERM (blockIdx.z * c.chunk)

// c = a·b by a block, where `A_ALONG` says that a tile of a has the terms of a sum side by side, and `B_ALONG` of b.
template <int HIGH, int WIDE, int TALL, bool A_ALONG, bool B_ALONG, class A, class B>
__device__ void multiply(A a, B b, struct Result c) {
    __shared__ __align__(16) float tiles_a[STAGES][SIZE(HIGH, A_ALONG)], tiles_b[STAGES][SIZE(WIDE, B_ALONG)];
    int begin = FIRST_TERM, end = min(c.inner, begin + c.chunk), count = (end - begin + DEEP - 1) / DEEP;
    int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    int top = warp / (WIDE / 32) * TALL, left = warp % (WIDE / 32) * 32;
    float sums[TALL / 16][4][4] = {};
    for (int k = 0; k < STAGES - 1; k++) {
        if (k < count) {
            a.load(tiles_a[k], begin + k * DEEP, end);
            b.load(tiles_b[k], begin + k * DEEP, end);
        }
        asm volatile("cp.async.commit_group;");
    }
    int now = 0, next = STAGES - 1;
    for (int k = 0; k < count; k++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        const float *of_a = tiles_a[now], *of_b = tiles_b[now];
#pragma unroll
        for (int at = 0; at < DEEP; at += 8) {
            if (at == 8) {
                // the tile that was multiplied before this one makes room for the next
                if (k + STAGES - 1 < count) {
                    a.load(tiles_a[next], begin + (k + STAGES - 1) * DEEP, end);
                    b.load(tiles_b[next], begin + (k + STAGES - 1) * DEEP, end);
                }
                asm volatile("cp.async.commit_group;");
            }
            uint a1[TALL / 16][4], a2[TALL / 16][4], b1[4][2], b2[4][2];
#pragma unroll
            for (int i = 0; i < TALL / 16; i++)
#pragma unroll
                for (int part = 0; part < 4; part++) {
                    int row = top + i * 16 + g + part % 2 * 8, term = at + t + part / 2 * 4;
                    float x = of_a[A_ALONG ? row * ALONG + term : term * ACROSS(HIGH) + row];
                    a1[i][part] = __float_as_uint(x);
                    a2[i][part] = rest(x);
                }
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int part = 0; part < 2; part++) {
                    int col = left + j * 8 + g, term = at + t + part * 4;
                    float x = of_b[B_ALONG ? col * ALONG + term : term * ACROSS(WIDE) + col];
                    b1[j][part] = __float_as_uint(x);
                    b2[j][part] = rest(x);
                }
            // the small ones first
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int i = 0; i < TALL / 16; i++) multiply_add(sums[i][j], a2[i], b1[j]);
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int i = 0; i < TALL / 16; i++) multiply_add(sums[i][j], a1[i], b2[j]);
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int i = 0; i < TALL / 16; i++) multiply_add(sums[i][j], a1[i], b1[j]);
        }
        now = now + 1 == STAGES ? 0 : now + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
    }
    float *out = c.at + (wide)blockIdx.z * c.rows * c.cols;
#pragma unroll
    for (int i = 0; i < TALL / 16; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = blockIdx.y * HIGH + top + i * 16 + g + half * 8;
            if (row >= c.rows) continue;
            float bias = c.bias ? c.bias[row] : 0.0f;
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int one = 0; one < 2; one++) {
                    int col = blockIdx.x * WIDE + left + j * 8 + 2 * t + one;
                    if (col >= c.cols) continue;
                    float *to = out + (wide)row * c.cols + col;
                    float sum = sums[i][j][2 * half + one] + bias;
                    *to = c.add ? *to + sum : sum;
                }
        }
}

#define T THREADS(HIGH, WIDE, TALL)
#define PLAIN (const float *a, int a_stride, const float *b, int b_stride, struct Result c)
#define WINDOWED (const float *a, const float *b, const struct Entry *entries, uint n, struct Window w, struct Result c)

// Of two matrices as they lie: c = a·b.
template <int HIGH, int WIDE, int TALL> __device__ void plain PLAIN {
    Rows<HIGH, T> of_a(a, FIRST_ROW, c.rows, a_stride, c.inner);
    multiply<HIGH, WIDE, TALL, true, false>(of_a, Columns<WIDE, T>(b, FIRST_COL, c.cols, b_stride), c);
}
// c = a·bᵀ.
template <int HIGH, int WIDE, int TALL> __device__ void second PLAIN {
    Rows<HIGH, T> of_a(a, FIRST_ROW, c.rows, a_stride, c.inner);
    multiply<HIGH, WIDE, TALL, true, true>(of_a, Rows<WIDE, T>(b, FIRST_COL, c.cols, b_stride, c.inner), c);
}
// c = aᵀ·b.
template <int HIGH, int WIDE, int TALL> __device__ void first PLAIN {
    Columns<HIGH, T> of_a(a, FIRST_ROW, c.rows, a_stride);
    multiply<HIGH, WIDE, TALL, false, false>(of_a, Columns<WIDE, T>(b, FIRST_COL, c.cols, b_stride), c);
}
// A convolution of the images b with the kernels a.
template <int HIGH, int WIDE, int TALL> __device__ void convolve WINDOWED {
    Rows<HIGH, T> of_a(a, FIRST_ROW, c.rows, c.inner, c.inner);
    multiply<HIGH, WIDE, TALL, true, false>(of_a, Windows<WIDE, T>(b, entries, FIRST_COL, n, w, false, FIRST_TERM), c);
}
// Its transpose for a stride of 1: signals of the images before from the signals b.
template <int HIGH, int WIDE, int TALL> __device__ void convolve_back WINDOWED {
    Kernels<HIGH, T> of_a(a, entries, FIRST_ROW, c.rows, w.kernel_height * w.kernel_width, FIRST_TERM);
    multiply<HIGH, WIDE, TALL, true, false>(of_a, Windows<WIDE, T>(b, entries, FIRST_COL, n, w, true, FIRST_TERM), c);
}
// The gradient of kernels from the signals a and the images b.
template <int HIGH, int WIDE, int TALL> __device__ void kernel_gradient WINDOWED {
    Rows<HIGH, T> of_a(a, FIRST_ROW, c.rows, c.inner, c.inner);
    Places<WIDE, T> of_b(b, entries, FIRST_COL, c.cols, n, w, FIRST_TERM);
    multiply<HIGH, WIDE, TALL, true, true>(of_a, of_b, c);
}

// With tiles of these sides, by warps of these rows.
#define KERNEL(name, way, parameters, arguments, high, wide, tall, blocks)                                                \
    extern "C" __global__ __launch_bounds__(THREADS(high, wide, tall), blocks) void name parameters {                     \
        way<high, wide, tall> arguments;                                                                                  \
    }
#define EVERY(way, parameters, arguments)                                                                                 \
    KERNEL(way##_high, way, parameters, arguments, 128, 64, 64, 3)                                                        \
    KERNEL(way##_square, way, parameters, arguments, 64, 64, 32, 5)                                                       \
    KERNEL(way##_low, way, parameters, arguments, 32, 64, 32, 8)                                                          \
    KERNEL(way##_small, way, parameters, arguments, 32, 32, 32, 12)
EVERY(plain, PLAIN, (a, a_stride, b, b_stride, c))
EVERY(second, PLAIN, (a, a_stride, b, b_stride, c))
EVERY(first, PLAIN, (a, a_stride, b, b_stride, c))
EVERY(convolve, WINDOWED, (a, b, entries, n, w, c))
EVERY(convolve_back, WINDOWED, (a, b, entries, n, w, c))
EVERY(kernel_gradient, WINDOWED, (a, b, entries, n, w, c))
