//! The session with the process manager, in a process without one.

use super::super::pmi::*;
use super::*;

#[test]
fn without_a_process_manager_there_is_one_rank() {
    let (mut job, mut host, mut hosts) = (ntbring_pmi_job_t::default(), 7, 7);
    let mut room = [b'x' as c_char; 6];
    let (key, value) = (c"key".as_ptr(), c"value".as_ptr());
    // SAFETY: all pointers are valid for the calls, or NULL, which the functions check for.
    unsafe {
        assert_eq!((ntbring_pmi_barrier(), ntbring_pmi_close()), (NTBRING_ERR_ARGUMENT, NTBRING_ERR_ARGUMENT));
        assert!(text().contains("not open"), "{}", text());
        assert_eq!(ntbring_pmi_open(std::ptr::null_mut()), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_pmi_open(&mut job), 0, "{}", text());
        assert_eq!((job.rank, job.size, job.spawned, job.fd), (0, 1, 0, -1));
        assert_eq!((job.kvsname_max, job.keylen_max, job.vallen_max), (256, 256, 256));
        assert_eq!(ntbring_pmi_put(key, std::ptr::null()), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_pmi_put(key, c"two words".as_ptr()), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_pmi_get(key, room.as_mut_ptr(), 6), NTBRING_ERR_ARGUMENT);
        assert!(text().contains("no process has put the key key"), "{}", text());
        assert_eq!((ntbring_pmi_put(key, value), ntbring_pmi_barrier()), (0, 0), "{}", text());
        assert_eq!(ntbring_pmi_get(key, room.as_mut_ptr(), 5), NTBRING_ERR_ARGUMENT);
        assert!(text().contains("needs 6 bytes"), "{}", text());
        assert_eq!(ntbring_pmi_get(key, room.as_mut_ptr(), 6), 0, "{}", text());
        assert_eq!(std::ffi::CStr::from_ptr(room.as_ptr()), c"value");
        assert_eq!(ntbring_pmi_hosts(std::ptr::null_mut(), &mut hosts), NTBRING_ERR_ARGUMENT);
        assert_eq!((ntbring_pmi_hosts(&mut host, &mut hosts), host, hosts), (0, 0, 1));
        ntbring_pmi_lock();
        assert_eq!(ntbring_pmi_abort(3), 0);
        ntbring_pmi_unlock();
        ntbring_pmi_keep();
        assert_eq!(ntbring_pmi_close(), 0);
    }
}
