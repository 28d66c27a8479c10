//! The stack machine that runs a pickle.

use std::borrow::Cow;

use num_bigint::BigInt;

use super::graph::{Id, Node, Object};
use super::problem::{PickleError, PickleLimits, PickleProblem};
use super::text;

/// The stack machine; see `pickle.rs`.
pub struct Machine<'a> {
    frame: &'a [u8],
    at: usize,
    nodes: Vec<Node<'a>>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: Vec<Option<Id>>,
    most_nodes: usize,
}

type MachineResult<T> = Result<T, PickleProblem>;

impl<'a> Machine<'a> {
    /// Creates a machine at the start of a frame.
    pub fn new(frame: &'a [u8], limits: PickleLimits) -> Self {
        // The capacity of the vectors is estimated: a node takes some six bytes of the frame. A log record has some 24
        // keys.
        let most = limits.items.min(frame.len() / 6);
        Self {
            frame,
            at: 0,
            nodes: Vec::with_capacity(most),
            stack: Vec::with_capacity(64),
            marks: Vec::new(),
            memo: Vec::with_capacity(most),
            // The limit of nodes is higher than that of values, because keys are nodes, too.
            most_nodes: limits.items.saturating_mul(4),
        }
    }

    /// Runs the pickle to its end. Returns all nodes, and the id of the result.
    pub fn run(mut self) -> Result<(Vec<Node<'a>>, Id), PickleError> {
        loop {
            let at = self.at;
            match self.step() {
                Ok(None) => {}
                Ok(Some(root)) => return Ok((self.nodes, root)),
                Err(problem) => return Err(PickleError { at, problem }),
            }
        }
    }

    fn bytes(&mut self, count: usize) -> MachineResult<&'a [u8]> {
        let end = self.at.checked_add(count).ok_or(PickleProblem::Truncated)?;
        let found = self.frame.get(self.at..end).ok_or(PickleProblem::Truncated)?;
        self.at = end;
        Ok(found)
    }

    fn array<const COUNT: usize>(&mut self) -> MachineResult<[u8; COUNT]> {
        let bytes = self.bytes(COUNT)?;
        bytes.try_into().map_err(|_| PickleProblem::Truncated)
    }

    fn byte(&mut self) -> MachineResult<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn short(&mut self) -> MachineResult<usize> {
        self.byte().map(usize::from)
    }

    fn four(&mut self) -> MachineResult<usize> {
        self.array().map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn eight(&mut self) -> MachineResult<usize> {
        self.array().and_then(|bytes| usize::try_from(u64::from_le_bytes(bytes)).map_err(|_| PickleProblem::Truncated))
    }

    fn line(&mut self) -> MachineResult<&'a [u8]> {
        let rest = &self.frame[self.at..];
        let length = rest.iter().position(|byte| *byte == b'\n').ok_or(PickleProblem::Truncated)?;
        self.at += length + 1;
        Ok(&rest[..length])
    }

    /// Reads a line of ASCII text.
    fn word(&mut self) -> MachineResult<&'a str> {
        self.line().and_then(|line| std::str::from_utf8(line).map(str::trim).map_err(|_| PickleProblem::Malformed))
    }

    fn make(&mut self, node: Node<'a>) -> MachineResult<Id> {
        if self.nodes.len() >= self.most_nodes {
            return Err(PickleProblem::TooMany);
        }
        self.nodes.push(node);
        Ok(self.nodes.len() as Id - 1)
    }

    fn push(&mut self, node: Node<'a>) -> MachineResult<()> {
        let id = self.make(node)?;
        self.stack.push(id);
        Ok(())
    }

    fn pop(&mut self) -> MachineResult<Id> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() > floor { self.stack.pop().ok_or(PickleProblem::Stack) } else { Err(PickleProblem::Stack) }
    }

    fn top(&self) -> MachineResult<Id> {
        self.stack.last().copied().ok_or(PickleProblem::Stack)
    }

    fn pop_to_mark(&mut self) -> MachineResult<Vec<Id>> {
        let mark = self.mark()?;
        Ok(self.stack.split_off(mark))
    }

    fn put(&mut self, index: usize) -> MachineResult<()> {
        let top = self.top()?;
        // Each memo entry needs an instruction of its own. So an index beyond the position in the frame is invalid. It
        // would also take more memory than the frame.
        if index > self.at {
            return Err(PickleProblem::Malformed);
        }
        if self.memo.len() <= index {
            self.memo.resize(index + 1, None);
        }
        self.memo[index] = Some(top);
        Ok(())
    }

    fn get(&mut self, index: usize) -> MachineResult<()> {
        let found = self.memo.get(index).copied().flatten().ok_or(PickleProblem::Malformed)?;
        self.stack.push(found);
        Ok(())
    }

    /// Pops two values, and returns them in the order in which they were pushed.
    fn pop_two(&mut self) -> MachineResult<(Id, Id)> {
        let second = self.pop()?;
        Ok((self.pop()?, second))
    }

    /// Moves the values on the stack from index `from` on into the list, set or object below them.
    fn append(&mut self, from: usize) -> MachineResult<()> {
        let target = self.below(from)?;
        let items = self.stack.drain(from..);
        match &mut self.nodes[target as usize] {
            Node::Items(found) => found.extend(items),
            Node::Object(object) => object.items.extend(items),
            _ => return Err(PickleProblem::Stack),
        }
        Ok(())
    }

    /// Moves the pairs on the stack from index `from` on into the dict or object below them.
    fn set(&mut self, from: usize) -> MachineResult<()> {
        let target = self.below(from)?;
        let pairs = pairs(&self.stack[from..])?;
        match &mut self.nodes[target as usize] {
            Node::Map(found) => found.extend(pairs),
            Node::Object(object) => object.pairs.extend(pairs),
            _ => return Err(PickleProblem::Stack),
        }
        self.stack.truncate(from);
        Ok(())
    }

    fn below(&self, from: usize) -> MachineResult<Id> {
        from.checked_sub(1).and_then(|at| self.stack.get(at)).copied().ok_or(PickleProblem::Stack)
    }

    fn mark(&mut self) -> MachineResult<usize> {
        self.marks.pop().ok_or(PickleProblem::Stack)
    }

    /// Index on the stack of the first of the last `count` values.
    fn last(&self, count: usize) -> MachineResult<usize> {
        let floor = self.marks.last().copied().unwrap_or(0);
        self.stack.len().checked_sub(count).filter(|from| *from >= floor).ok_or(PickleProblem::Stack)
    }

    /// Records a reference to a class or function. Its module and name are on two lines.
    fn global(&mut self) -> MachineResult<()> {
        let (module, name) = (self.line()?, self.line()?);
        let module = self.make(Node::Text(text::utf8(module)))?;
        let name = self.make(Node::Text(text::utf8(name)))?;
        self.push(Node::Object(Box::new(Object::global(module, name))))
    }

    /// Records a call of a class or function.
    fn call(&mut self, function: Id, arguments: Id) -> MachineResult<()> {
        self.push(Node::Object(Box::new(Object::call(function, arguments))))
    }

    /// Like [`Self::call`], for arguments that are not in a tuple yet.
    fn instance(&mut self, class: Id, arguments: Vec<Id>) -> MachineResult<()> {
        let arguments = self.make(Node::Items(arguments))?;
        self.call(class, arguments)
    }

    fn decimal(&mut self, text: &'a str) -> MachineResult<()> {
        let text = text.strip_suffix('L').unwrap_or(text);
        if let Ok(small) = text.parse::<i64>() {
            return self.push(Node::Int(small));
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(PickleProblem::Malformed);
        }
        self.push(Node::Long(Cow::Borrowed(text)))
    }

    /// Pushes an integer in two's complement, lowest byte first.
    fn push_long(&mut self, count: usize) -> MachineResult<()> {
        /// Chosen: CPython has the same limit. Converting longer integers to decimal takes too long.
        const MOST_BYTES: usize = 1786;
        let bytes = self.bytes(count)?;
        if bytes.len() > MOST_BYTES {
            return self.push(Node::Long(Cow::Owned(format!("<int of {} bytes>", bytes.len()))));
        }
        let number = BigInt::from_signed_bytes_le(bytes);
        let node = i64::try_from(&number).map_or_else(|_| Node::Long(Cow::Owned(number.to_string())), Node::Int);
        self.push(node)
    }

    /// Runs one instruction. After the last instruction it returns the id of the result.
    fn step(&mut self) -> MachineResult<Option<Id>> {
        let code = self.byte()?;
        match code {
            b'.' => return self.pop().map(Some),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => {
                if self.marks.last() == Some(&self.stack.len()) {
                    self.marks.pop();
                } else {
                    self.pop()?;
                }
            }
            b'1' => drop(self.pop_to_mark()?),
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
            }
            // PROTO and FRAME have no effect on the values.
            0x80 => drop(self.byte()?),
            0x95 => drop(self.array::<8>()?),

            b'N' => self.push(Node::None)?,
            0x88 => self.push(Node::Bool(true))?,
            0x89 => self.push(Node::Bool(false))?,
            b'K' => {
                let number = self.byte()?.into();
                self.push(Node::Int(number))?;
            }
            b'M' => {
                let number = u16::from_le_bytes(self.array()?).into();
                self.push(Node::Int(number))?;
            }
            b'J' => {
                let number = i32::from_le_bytes(self.array()?).into();
                self.push(Node::Int(number))?;
            }
            b'I' => match self.word()? {
                "01" => self.push(Node::Bool(true))?,
                "00" => self.push(Node::Bool(false))?,
                digits => self.decimal(digits)?,
            },
            b'L' => {
                let digits = self.word()?;
                self.decimal(digits)?;
            }
            0x8a => {
                let count = self.short()?;
                self.push_long(count)?;
            }
            0x8b => {
                let count = self.four()?;
                self.push_long(count)?;
            }
            b'F' => {
                let number = self.word()?.parse().map_err(|_| PickleProblem::Malformed)?;
                self.push(Node::Float(number))?;
            }
            b'G' => {
                let number = f64::from_be_bytes(self.array()?);
                self.push(Node::Float(number))?;
            }

            b'X' => {
                let count = self.four()?;
                self.push_utf8(count)?;
            }
            0x8c => {
                let count = self.short()?;
                self.push_utf8(count)?;
            }
            0x8d => {
                let count = self.eight()?;
                self.push_utf8(count)?;
            }
            b'V' => {
                let line = self.line()?;
                self.push(Node::Text(text::raw_unicode_escape(line)))?;
            }
            b'S' => {
                let text = text::unquoted(self.line()?).ok_or(PickleProblem::Malformed)?;
                self.push(Node::Text(text))?;
            }
            b'T' => {
                let count = self.four()?;
                self.push_guessed(count)?;
            }
            b'U' => {
                let count = self.short()?;
                self.push_guessed(count)?;
            }
            b'B' => {
                let count = self.four()?;
                self.push_bytes(count)?;
            }
            b'C' => {
                let count = self.short()?;
                self.push_bytes(count)?;
            }
            0x8e | 0x96 => {
                let count = self.eight()?;
                self.push_bytes(count)?;
            }

            b']' | b')' | 0x8f => self.push(Node::Items(Vec::new()))?,
            b'l' | b't' | 0x91 => {
                let items = self.pop_to_mark()?;
                self.push(Node::Items(items))?;
            }
            0x85..=0x87 => {
                let from = self.last(usize::from(code - 0x84))?;
                let items = self.stack.split_off(from);
                self.push(Node::Items(items))?;
            }
            b'a' => {
                let from = self.last(1)?;
                self.append(from)?;
            }
            b'e' | 0x90 => {
                let from = self.mark()?;
                self.append(from)?;
            }
            b'}' => self.push(Node::Map(Vec::new()))?,
            b'd' => {
                let from = self.mark()?;
                let pairs = pairs(&self.stack[from..])?.collect();
                self.stack.truncate(from);
                self.push(Node::Map(pairs))?;
            }
            b's' => {
                let from = self.last(2)?;
                self.set(from)?;
            }
            b'u' => {
                let from = self.mark()?;
                self.set(from)?;
            }

            b'p' => {
                let index = self.word()?.parse().map_err(|_| PickleProblem::Malformed)?;
                self.put(index)?;
            }
            b'q' => {
                let index = self.short()?;
                self.put(index)?;
            }
            b'r' => {
                let index = self.four()?;
                self.put(index)?;
            }
            0x94 => self.put(self.memo.len())?,
            b'g' => {
                let index = self.word()?.parse().map_err(|_| PickleProblem::Malformed)?;
                self.get(index)?;
            }
            b'h' => {
                let index = self.short()?;
                self.get(index)?;
            }
            b'j' => {
                let index = self.four()?;
                self.get(index)?;
            }

            b'c' => self.global()?,
            0x93 => {
                let (module, name) = self.pop_two()?;
                if ![module, name].iter().all(|id| matches!(self.nodes[*id as usize], Node::Text(_))) {
                    return Err(PickleProblem::Stack);
                }
                self.push(Node::Object(Box::new(Object::global(module, name))))?;
            }
            b'R' | 0x81 => {
                let (function, arguments) = self.pop_two()?;
                self.call(function, arguments)?;
            }
            0x92 => {
                // NEWOBJ_EX: drop the keyword arguments. No type that is shown as text has keyword arguments.
                self.pop()?;
                let (function, arguments) = self.pop_two()?;
                self.call(function, arguments)?;
            }
            b'o' => {
                let parts = self.pop_to_mark()?;
                let (class, arguments) = parts.split_first().ok_or(PickleProblem::Stack)?;
                self.instance(*class, arguments.to_vec())?;
            }
            b'i' => {
                let arguments = self.pop_to_mark()?;
                self.global()?;
                let class = self.pop()?;
                self.instance(class, arguments)?;
            }
            b'b' => {
                let state = self.pop()?;
                let target = self.top()?;
                if let Node::Object(object) = &mut self.nodes[target as usize] {
                    object.state = Some(state);
                }
            }

            b'P' | b'Q' | 0x82..=0x84 | 0x97 | 0x98 => return Err(PickleProblem::Outside),
            other => return Err(PickleProblem::Unknown(other)),
        }
        Ok(None)
    }

    fn push_utf8(&mut self, count: usize) -> MachineResult<()> {
        let bytes = self.bytes(count)?;
        self.push(Node::Text(text::utf8(bytes)))
    }

    fn push_guessed(&mut self, count: usize) -> MachineResult<()> {
        let bytes = self.bytes(count)?;
        self.push(Node::Text(text::guessed(bytes)))
    }

    fn push_bytes(&mut self, count: usize) -> MachineResult<()> {
        let bytes = self.bytes(count)?;
        self.push(Node::Bytes(Cow::Borrowed(bytes)))
    }
}

/// Keys and values, alternating.
fn pairs(items: &[Id]) -> MachineResult<impl Iterator<Item = (Id, Id)>> {
    if !items.len().is_multiple_of(2) {
        return Err(PickleProblem::Stack);
    }
    Ok(items.chunks_exact(2).map(|pair| (pair[0], pair[1])))
}
