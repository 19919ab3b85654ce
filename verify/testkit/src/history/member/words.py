"""The answers and messages of a member in Python: see `reply.rs` and `messages.rs`."""

import numpy as np

WORDS_MIN, PARTS = 4, 64
MASK = (1 << 64) - 1
UNSAID = MASK


def check_sum(words):
    total = len(words)
    for word in words[:3] + words[WORDS_MIN:]:
        total = ((total ^ word) * 0x9E37_79B9_7F4A_7C15) & MASK
        total = (total << 29 | total >> 35) & MASK
    return total


def content(handle, n, count):
    words = [handle << 32, n, 0, 0]
    x = (words[0] << 17 | words[0] >> 47) & MASK ^ n
    for _ in range(WORDS_MIN, max(count, WORDS_MIN)):
        x = (x * 0x5851_F42D_4C95_7F2D + 1) & MASK
        words.append(x)
    words[3] = check_sum(words)
    return np.array(words, np.uint64)


class Seen:
    """A message that came."""

    def __init__(self, array, seq=0, lost=0, borrowed=False, id=(0, 0)):
        words = [] if array is None else array.view(np.uint64).tolist()
        self.whole = len(words) >= WORDS_MIN and words[3] == check_sum(words)
        self.sender, self.n = (words[0] >> 32, words[1]) if self.whole else (0, 0)
        self.seq, self.lost, self.borrowed, self.id = seq, lost, borrowed, id

    def same(self, other):
        return (self.whole, self.sender, self.n) == (other.whole, other.sender, other.n)

    def __str__(self):
        bits = f"{int(self.whole)}.{int(self.borrowed)}"
        return f" m={self.sender}.{self.n}.{self.seq}.{self.lost}.{bits}.{self.id[0]}.{self.id[1]}"


class Reply:
    def __init__(self):
        self.value, self.id, self.seen, self.news, self.data = 0, (0, 0), [], [], []

    def line(self, thread, outcome, text, took):
        line = f"{thread} {outcome} v={self.value} id={self.id[0]}.{self.id[1]} took={took[0]}.{took[1]}"
        line += "".join(map(str, self.seen))
        for what, id in self.news:
            line += f" e={['joined', 'left', 'died', 'corrupt'].index(what)}.0.0.{id[0]}.{id[1]}"
        line += "".join(f" d={word}" for word in self.data)
        return line + (" # " + text.replace("\n", " ") if text else "") + "\n"
