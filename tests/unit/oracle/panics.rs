// SPDX-License-Identifier: MIT
// Rust: panics through frames that drop, trait objects, closures, iterators, collections, formatting.
use std::collections::{BTreeMap, HashMap};
use std::panic;

struct Counted<'a>(&'a mut u32);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        *self.0 += 1;
    }
}

trait Shape {
    fn area(&self, n: i32) -> f64;
}

struct Square(f64);
struct Boxed(Box<dyn Shape>);

impl Shape for Square {
    #[inline(never)]
    fn area(&self, n: i32) -> f64 {
        if n < 0 {
            panic!("negative: {}", n);
        }
        self.0 * f64::from(n)
    }
}

impl Shape for Boxed {
    #[inline(never)]
    fn area(&self, n: i32) -> f64 {
        self.0.area(n) + 1.0
    }
}

#[inline(never)]
fn passes(depth: u32, dropped: &mut u32) -> u32 {
    if depth == 0 {
        panic!("deep");
    }
    let counted = Counted(dropped);
    let text = "x".repeat(depth as usize);
    passes(depth - 1, counted.0) + text.len() as u32
}

#[inline(never)]
fn contains() -> usize {
    let mut words: HashMap<String, usize> = HashMap::new();
    let mut sorted: BTreeMap<usize, String> = BTreeMap::new();
    for i in 0..6_usize {
        *words.entry(format!("word {}", i * 7 % 5)).or_default() += i;
        sorted.insert(i * 7919 % 31, format!("{:>8.3}", i as f64 / 7.0));
    }
    let mut list: Vec<&String> = words.keys().collect();
    list.sort_by(|a, b| b.cmp(a));
    list.iter().map(|word| word.len()).sum::<usize>() + sorted.values().map(String::len).sum::<usize>()
}

#[inline(never)]
fn all() -> u32 {
    let mut dropped = 0;
    let shape: Box<dyn Shape> = Box::new(Boxed(Box::new(Square(2.0))));
    let caught = panic::catch_unwind(panic::AssertUnwindSafe(|| passes(3, &mut dropped)));
    let other = panic::catch_unwind(panic::AssertUnwindSafe(|| shape.area(3) + shape.area(-1)));
    assert!(caught.is_err() && other.is_err());
    dropped + contains() as u32
}

#[no_mangle]
pub extern "C" fn oracle_work(begin: extern "C" fn(), end: extern "C" fn()) {
    panic::set_hook(Box::new(|_| {}));
    for _ in 0..2 {
        begin();
        std::hint::black_box(all());
        end();
    }
}
