// Contention on a Rust std::sync::Mutex (raw futex calls and a short spin, no libpthread).
// The progress point and the knobs come from rust_shim.c.
//
// Expected: as in locks.h: critical min(X, 33.3 + (X - 33.3) / 2), parallel 0.
use std::sync::{Arc, Mutex};
use std::thread;

extern "C" {
    fn shim_start(argc: i32, argv: *const *const i8);
    fn shim_amount(name: *const u8, us: f64) -> u64;
    fn shim_spin(n: u64) -> u64;
    fn shim_visit();
    fn shim_over() -> i32;
    fn shim_wait();
    fn shim_report() -> i32;
}

#[inline(never)]
fn region_critical(n: u64) -> u64 {
    unsafe { shim_spin(n) ^ 1 }
}

#[inline(never)]
fn region_parallel(n: u64) -> u64 {
    unsafe { shim_spin(n) ^ 2 }
}

fn worker(shared: Arc<Mutex<u64>>, nc: u64, np: u64) {
    let mut own = 0u64;
    while unsafe { shim_over() } == 0 {
        {
            let mut held = shared.lock().unwrap();
            *held ^= region_critical(nc); // GT_REGION critical
        }
        own ^= region_parallel(np); // GT_REGION parallel
        unsafe { shim_visit() };
    }
    if own == 42 {
        println!("!");
    }
}

fn main() {
    let args: Vec<std::ffi::CString> =
        std::env::args().map(|a| std::ffi::CString::new(a).unwrap()).collect();
    let argv: Vec<*const i8> = args.iter().map(|a| a.as_ptr() as *const i8).collect();
    let (nc, np) = unsafe {
        shim_start(argv.len() as i32, argv.as_ptr());
        (
            shim_amount(b"critical\0".as_ptr(), 600.0),
            shim_amount(b"parallel\0".as_ptr(), 400.0),
        )
    };
    let shared = Arc::new(Mutex::new(0u64));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let shared = shared.clone();
            thread::spawn(move || worker(shared, nc, np))
        })
        .collect();
    unsafe { shim_wait() };
    for t in threads {
        t.join().unwrap();
    }
    std::process::exit(unsafe { shim_report() });
}
