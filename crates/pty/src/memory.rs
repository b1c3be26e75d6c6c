//! Returns unused memory to the system.

/// Returns free memory of the allocator. Worth a call after something large was freed, in a process that will
/// then sleep for long.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back() {
    // SAFETY: only returns unused pages of the allocator's own arenas.
    #[expect(unsafe_code, reason = "the allocator's own call has no safe wrapper")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other allocators do so by themselves, or not at all.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}
