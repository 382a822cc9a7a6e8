// How factors of a product come into fast memory, tile by tile (see tensor.cu): matrices as they lie, and what the columns of a
// convolution would hold, from where it is in the images. A tile has sixteen terms of COUNT sums and is fetched by T threads, beside
// what goes on.
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
