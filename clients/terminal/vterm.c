// What libvterm shows of a file of bytes, all that it remembers, a row a line:
// vterm COLUMNS ROWS FILE [OFFSET COLUMNS ROWS]... From each offset on, the window has another size.
#include <stdio.h>
#include <stdlib.h>
#include <vterm.h>

static int columns;

static void put_char(uint32_t c) {
  if (c < 0x80) putchar((int)c);
  else if (c < 0x800) { putchar(0xc0 | (c >> 6)); putchar(0x80 | (c & 0x3f)); }
  else if (c < 0x10000) { putchar(0xe0 | (c >> 12)); putchar(0x80 | ((c >> 6) & 0x3f)); putchar(0x80 | (c & 0x3f)); }
  else { putchar(0xf0 | (c >> 18)); putchar(0x80 | ((c >> 12) & 0x3f)); putchar(0x80 | ((c >> 6) & 0x3f)); putchar(0x80 | (c & 0x3f)); }
}

static void put_cell(const VTermScreenCell *cell) {
  if (cell->chars[0] == 0) { putchar(' '); return; }
  // The second half of a wide character.
  if (cell->chars[0] == (uint32_t)-1) return;
  for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell->chars[i]; i++) put_char(cell->chars[i]);
}

static int push_line(int cols, const VTermScreenCell *cells, void *user) {
  (void)user;
  for (int col = 0; col < cols; col++) put_cell(&cells[col]);
  putchar('\n');
  return 1;
}

static VTermScreenCallbacks callbacks = { .sb_pushline = push_line };

int main(int argc, char **argv) {
  if (argc < 4 || (argc - 4) % 3 != 0) return 2;
  columns = atoi(argv[1]);
  int rows = atoi(argv[2]);
  FILE *file = fopen(argv[3], "rb");
  if (!file) return 1;
  VTerm *vt = vterm_new(rows, columns);
  vterm_set_utf8(vt, 1);
  VTermScreen *screen = vterm_obtain_screen(vt);
  vterm_screen_enable_altscreen(screen, 1);
  vterm_screen_set_callbacks(screen, &callbacks, NULL);
  vterm_screen_reset(screen, 1);
  char bytes[4096];
  long at = 0;
  for (int next = 4; next <= argc; next += 3) {
    long until = next < argc ? atol(argv[next]) : -1;
    while (until < 0 || at < until) {
      size_t room = until < 0 || until - at > (long)sizeof bytes ? sizeof bytes : (size_t)(until - at);
      size_t n = fread(bytes, 1, room, file);
      if (n == 0) break;
      vterm_input_write(vt, bytes, n);
      at += (long)n;
    }
    if (next < argc) {
      columns = atoi(argv[next + 1]);
      rows = atoi(argv[next + 2]);
      vterm_set_size(vt, rows, columns);
    }
  }
  for (int row = 0; row < rows; row++) {
    for (int col = 0; col < columns; col++) {
      VTermScreenCell cell;
      vterm_screen_get_cell(screen, (VTermPos){ .row = row, .col = col }, &cell);
      put_cell(&cell);
    }
    putchar('\n');
  }
  return 0;
}
