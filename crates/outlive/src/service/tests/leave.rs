//! What those who could not join leave behind: nothing.

use super::*;

fn left(dir: &TempDir) -> usize {
    std::fs::read_dir(dir.join("root/default/services")).map_or(0, Iterator::count)
}

#[test]
fn who_could_not_join_leaves_no_service() {
    let dir = TempDir::new("service-not-joined");
    let n = node(&dir);
    let e = n.service::<u64, u64>("/s").unwrap().bound_bytes(100).client().unwrap_err();
    assert_eq!((e.kind(), left(&dir)), (ErrorKind::InvalidArgument, 0));
    // They had made the directories only.
    let long = "x".repeat(2000);
    let service = || n.service::<u64, u64>("/s").unwrap().type_names(&long, "r");
    let told = [service().client().unwrap_err().kind(), service().server().unwrap_err().kind()];
    assert_eq!((told, left(&dir)), ([ErrorKind::InvalidArgument; 2], 0));
    for (request, response, is_good) in [(500, 401, false), (0, 1, false), (500, 400, true)] {
        let [request, response] = [request, response].map(|len| "x".repeat(len));
        let service = n.service::<u64, u64>("/s").unwrap().type_names(&request, &response);
        assert_eq!(service.server().is_ok(), is_good, "{} {}", request.len(), response.len());
    }
}
