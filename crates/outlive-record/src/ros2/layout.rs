//! Payloads whose fields have fixed places, as CDR and back, without a tree in between.
//!
//! Steps say where each field is in the payload, in the order in which CDR has them. What no field
//! has (padding, and bytes behind the end of a text) is kept behind the last field if it is not
//! zero, so that the payload comes back byte by byte.

use outlive::PayloadType;

/// What this program writes: plain CDR, little-endian.
const LITTLE: [u8; 4] = [0, 1, 0, 0];

/// Largest header or fixed payload, bytes: what a file says of a type is a claim.
pub(crate) const SIZE_MAX: usize = 1 << 30;

/// How fields of one type become CDR.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    /// Full name of the message, like `robot/msg/Gripper`.
    pub(crate) name: String,
    /// Its definition as written in a file (`ros2msg`).
    pub(crate) text: String,
    pub(crate) steps: Vec<Step>,
    /// Whether the last field has what no other field has.
    pub(crate) keeps: bool,
    /// Whether the definition was made for the type.
    pub(crate) is_generated: bool,
    pub(crate) of: PayloadType,
}

/// Where a part is: `at` counts from the start of the payload, in a list of the element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Numbers of `width` bytes, `len` bytes in all.
    Numbers { at: usize, len: usize, width: usize },
    /// Text of at most `len` bytes, zeros behind it.
    Text { at: usize, len: usize },
    /// Elements of `stride` bytes.
    List { at: usize, many: Many, stride: usize, of: Vec<Step> },
    /// Bytes that no field has.
    Gap { at: usize, len: usize },
}

/// How many elements a list has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Many {
    Fixed(usize),
    /// What the `u32` at `count_at` says.
    Counted {
        count_at: usize,
        most: usize,
    },
    /// All until the payload's end.
    Rest,
}

/// Widths of the first and of the widest number of an element that is nothing but numbers: begun at
/// a multiple of the latter, CDR has its bytes as they are, and those of all elements behind it.
fn solid(of: &[Step], stride: usize) -> Option<(usize, usize)> {
    let (mut first, mut most, mut end) = (None, 1, 0);
    for step in of {
        let &Step::Numbers { at, len, width } = step else { return None };
        if at != end || at % width > 0 {
            return None;
        }
        (first, most, end) = (first.or(Some(width)), most.max(width), at + len);
    }
    first.filter(|_| end == stride && stride % most == 0).map(|first| (first, most))
}

/// The next multiple of a power of two.
fn aligned(at: usize, to: usize) -> usize {
    at + (at.wrapping_neg() & (to - 1))
}

/// Most bytes that as many of CDR may become by a list: texts in it may be mostly zeros.
fn grown_max(cdr_bytes: usize) -> usize {
    cdr_bytes.saturating_mul(64).saturating_add(1 << 20)
}

impl Layout {
    /// Name, encoding and bytes of the schema.
    pub(crate) fn schema(&self) -> (&str, &'static str, &[u8]) {
        (&self.name, super::SCHEMA_ENCODING, self.text.as_bytes())
    }

    /// A payload as CDR, into `out`.
    ///
    /// # Errors
    /// Bytes that are not a payload of the type, and lists longer than they may be.
    pub(crate) fn encode(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        if !self.of.fits(payload.len()) {
            return Err("its bytes do not match its type".into());
        }
        out.clear();
        out.extend(LITTLE);
        let mut to = Writer { payload, out, rest: Vec::new(), keeps: self.keeps };
        to.steps(&self.steps, 0)?;
        if self.keeps {
            let is_zero = to.rest.iter().all(|b| *b == 0);
            if is_zero && payload.len() - self.before_list() <= grown_max(to.out.len()) {
                to.rest.clear();
            }
            to.len(to.rest.len())?;
            to.out.extend_from_slice(&to.rest);
        }
        Ok(())
    }

    /// CDR as a payload.
    ///
    /// # Errors
    /// What is wrong with its bytes, which may come from anywhere.
    pub(crate) fn decode(&self, data: &[u8]) -> Result<Vec<u8>, String> {
        // Options are in the header's second half, and say nothing of plain CDR.
        let Some((&[_, 1, ..], data)) = data.split_first_chunk::<4>() else {
            return Err("it is not plain little-endian CDR".into());
        };
        let out = vec![0; self.before_list()];
        let mut from = Reader { data, at: 0, out, gaps: Vec::new() };
        from.steps(&self.steps, 0)?;
        if self.keeps {
            from.fill_gaps()?;
        }
        // Some writers fill up to a multiple of 4.
        match data.len() - from.at {
            0..4 => Ok(from.out),
            left => Err(format!("{left} bytes are left")),
        }
    }

    /// Bytes before the list that the rest of the payload is.
    fn before_list(&self) -> usize {
        match self.steps.iter().rev().find(|step| !matches!(step, Step::Gap { .. })) {
            Some(Step::List { at, many: Many::Rest, .. }) => *at,
            _ => self.of.size(),
        }
    }
}

/// A walk over a payload and its CDR side by side, in either direction.
trait Walk {
    /// Where it is in the CDR.
    fn at(&self) -> usize;

    /// How many elements the list at `at` has; part of the CDR if that is not always the same.
    fn count(&mut self, many: Many, base: usize, at: usize, stride: usize)
    -> Result<usize, String>;

    fn numbers(&mut self, at: usize, len: usize, width: usize) -> Result<(), String>;

    fn text(&mut self, at: usize, len: usize) -> Result<(), String>;

    /// Bytes of the payload that no field has.
    fn keep(&mut self, at: usize, len: usize) -> Result<(), String>;

    fn steps(&mut self, steps: &[Step], base: usize) -> Result<(), String> {
        for step in steps {
            match step {
                Step::Numbers { at, len, width } => self.numbers(base + at, *len, *width)?,
                Step::Text { at, len } => self.text(base + at, *len)?,
                Step::List { at, many, stride, of } => {
                    let many = self.count(*many, base, base + at, *stride)?;
                    let solid = solid(of, *stride);
                    for i in 0..many {
                        let base = base + at + i * stride;
                        if let Some((first, most)) = solid
                            && aligned(self.at(), first) % most == 0
                        {
                            self.numbers(base, (many - i) * stride, first)?;
                            break;
                        }
                        self.steps(of, base)?;
                    }
                }
                Step::Gap { at, len } => self.keep(base + at, *len)?,
            }
        }
        Ok(())
    }
}

struct Writer<'a> {
    payload: &'a [u8],
    out: &'a mut Vec<u8>,
    rest: Vec<u8>,
    keeps: bool,
}

impl<'a> Writer<'a> {
    fn align(&mut self, to: usize) {
        let at = self.at();
        self.out.extend_from_slice(&[0; 8][..aligned(at, to) - at]);
    }

    fn len(&mut self, len: usize) -> Result<(), String> {
        let len = u32::try_from(len).map_err(|_| "it is longer than CDR can say")?;
        self.align(4);
        self.out.extend(len.to_le_bytes());
        Ok(())
    }

    fn bytes(&self, at: usize, len: usize) -> Result<&'a [u8], String> {
        let bytes = at.checked_add(len).and_then(|end| self.payload.get(at..end));
        bytes.ok_or_else(|| format!("it ends before {len} bytes at {at}"))
    }
}

impl Walk for Writer<'_> {
    fn at(&self) -> usize {
        self.out.len() - LITTLE.len()
    }

    fn count(
        &mut self,
        many: Many,
        base: usize,
        at: usize,
        stride: usize,
    ) -> Result<usize, String> {
        let count = match many {
            Many::Fixed(count) => return Ok(count),
            Many::Rest => (self.payload.len() - at.min(self.payload.len())) / stride,
            Many::Counted { count_at, most } => {
                let count = self.bytes(base + count_at, 4)?;
                let count = u32::from_le_bytes(count.try_into().unwrap_or_default()) as usize;
                if count > most {
                    return Err(format!("a list of {count} elements has room for {most}"));
                }
                count
            }
        };
        self.len(count)?;
        Ok(count)
    }

    fn numbers(&mut self, at: usize, len: usize, width: usize) -> Result<(), String> {
        if len == 0 {
            return Ok(());
        }
        self.align(width);
        self.out.extend_from_slice(self.bytes(at, len)?);
        Ok(())
    }

    /// Up to the first zero, or to what is not UTF-8.
    fn text(&mut self, at: usize, len: usize) -> Result<(), String> {
        let bytes = self.bytes(at, len)?;
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(len);
        let shown = match std::str::from_utf8(&bytes[..end]) {
            Ok(text) => text.len(),
            Err(e) => e.valid_up_to(),
        };
        self.len(shown + 1)?;
        self.out.extend_from_slice(&bytes[..shown]);
        self.out.push(0);
        self.keep(at + shown, len - shown)
    }

    fn keep(&mut self, at: usize, len: usize) -> Result<(), String> {
        if self.keeps {
            self.rest.extend_from_slice(self.bytes(at, len)?);
        }
        Ok(())
    }
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
    out: Vec<u8>,
    /// Where bytes are that no field has, and how many.
    gaps: Vec<(usize, usize)>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, align: usize, len: usize) -> Result<&'a [u8], String> {
        let from = aligned(self.at, align);
        let taken = from.checked_add(len).and_then(|to| self.data.get(from..to));
        let taken = taken.ok_or_else(|| format!("it ends before {len} bytes at {from}"))?;
        self.at = from + len;
        Ok(taken)
    }

    fn len(&mut self) -> Result<usize, String> {
        let len = self.take(4, 4)?;
        let len = u32::from_le_bytes(len.try_into().unwrap_or_default()) as usize;
        // Every element has a byte at least.
        if len > self.data.len() - self.at {
            return Err(format!("it ends before {len} elements"));
        }
        Ok(len)
    }

    fn put(&mut self, at: usize, bytes: &[u8]) -> Result<(), String> {
        let end = at.checked_add(bytes.len());
        let place = end.and_then(|end| self.out.get_mut(at..end));
        place.ok_or("it has more than its type")?.copy_from_slice(bytes);
        Ok(())
    }

    /// From the last field, which is empty if they are zero.
    fn fill_gaps(&mut self) -> Result<(), String> {
        let len = self.len()?;
        let mut kept = self.take(1, len)?;
        let gaps = std::mem::take(&mut self.gaps);
        if len > 0 && gaps.iter().map(|(_, len)| len).sum::<usize>() != len {
            return Err(format!(
                "its last field has {len} bytes, which is not what it has to have"
            ));
        }
        for (at, len) in gaps {
            let Some((bytes, rest)) = kept.split_at_checked(len) else { break };
            self.put(at, bytes)?;
            kept = rest;
        }
        Ok(())
    }
}

impl Walk for Reader<'_> {
    fn at(&self) -> usize {
        self.at
    }

    fn count(
        &mut self,
        many: Many,
        base: usize,
        at: usize,
        stride: usize,
    ) -> Result<usize, String> {
        match many {
            Many::Fixed(count) => Ok(count),
            Many::Rest => {
                let count = self.len()?;
                let bytes = count.checked_mul(stride).filter(|n| *n <= grown_max(self.data.len()));
                let bytes = bytes.ok_or_else(|| format!("it claims {count} elements"))?;
                self.out.resize(at + bytes, 0);
                Ok(count)
            }
            Many::Counted { count_at, most } => {
                let count = self.len()?;
                if count > most {
                    return Err(format!("a list of {count} elements has room for {most}"));
                }
                self.put(base + count_at, &(count as u32).to_le_bytes())?;
                Ok(count)
            }
        }
    }

    fn numbers(&mut self, at: usize, len: usize, width: usize) -> Result<(), String> {
        if len == 0 {
            return Ok(());
        }
        let bytes = self.take(width, len)?;
        self.put(at, bytes)
    }

    fn text(&mut self, at: usize, len: usize) -> Result<(), String> {
        let text = self.len()?;
        let bytes = self.take(1, text)?;
        let shown = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        if shown.len() > len {
            return Err(format!("a text of {} bytes has room for {len}", shown.len()));
        }
        self.gaps.push((at + shown.len(), len - shown.len()));
        self.put(at, shown)
    }

    fn keep(&mut self, at: usize, len: usize) -> Result<(), String> {
        self.gaps.push((at, len));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
