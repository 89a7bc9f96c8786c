from decklog.core.store import BURIED_MAX, ObjectStore
from decklog.events.facts import ObjectDeleted, ResyncFinished, ResyncStarted
from decklog.objects.pod import Pod


def make(uid: str, name: str = "a", version: int = 1) -> Pod:
    return Pod(uid=uid, namespace="shop", name=name, resource_version=str(version))


def deleted(uid: str, name: str = "a") -> ObjectDeleted:
    return ObjectDeleted(kind="Pod", namespace="shop", name=name, uid=uid)


def started() -> ResyncStarted:
    return ResyncStarted(kind="Pod", resource_version="9")


def finished(version: int = 9) -> ResyncFinished:
    return ResyncFinished(kind="Pod", resource_version=str(version), count=0, digest="")


def test_the_same_version_again_is_no_news() -> None:
    store = ObjectStore()
    assert store.upsert("Pod", make("u")) == (None, None, True)
    assert store.upsert("Pod", make("u"))[2] is False


def test_an_older_version_changes_nothing() -> None:
    store = ObjectStore()
    store.upsert("Pod", make("u", version=5))
    assert store.upsert("Pod", make("u", version=4))[2] is False
    assert store.objects("Pod")["u"].resource_version == "5"


def test_a_name_that_comes_back_under_another_uid_replaces_the_old_object() -> None:
    store = ObjectStore()
    old, new = make("u1"), make("u2", version=2)
    store.upsert("Pod", old)
    assert store.upsert("Pod", new) == (None, old, True)
    assert store.get("Pod", "u1") is None
    assert store.named("Pod", "shop/a") is new


def test_an_object_that_was_deleted_does_not_come_back_by_redelivery() -> None:
    store = ObjectStore()
    store.upsert("Pod", make("u"))
    assert store.delete(deleted("u")) is not None
    assert store.upsert("Pod", make("u"))[2] is False
    assert store.delete(deleted("u")) is None


def test_a_resync_is_believed_even_where_it_is_older() -> None:
    store = ObjectStore()
    store.upsert("Pod", make("u", version=9))
    store.upsert("Pod", make("gone", "b"))
    store.delete(deleted("gone", "b"))
    store.begin_resync(started())
    assert store.upsert("Pod", make("u", version=3))[2] is True
    assert store.upsert("Pod", make("gone", "b"))[2] is True
    assert store.finish_resync(finished()) == []


def test_what_a_resync_does_not_name_is_gone() -> None:
    store = ObjectStore()
    kept, lost = make("u1"), make("u2", "b")
    store.upsert("Pod", kept)
    store.upsert("Pod", lost)
    store.begin_resync(started())
    store.upsert("Pod", kept)
    assert store.finish_resync(finished()) == [lost]
    assert store.objects("Pod") == {"u1": kept}


def test_what_was_made_after_a_resync_s_list_comes_back_when_its_watcher_tells_of_it() -> None:
    """A second watcher lists, the first tells of a new pod, and only then the list is told."""
    store = ObjectStore()
    store.upsert("Pod", make("new", version=7))
    store.begin_resync(started())
    assert store.finish_resync(finished(version=5)) == [make("new", version=7)]
    assert store.upsert("Pod", make("new", version=4))[2] is False
    assert store.upsert("Pod", make("new", version=7))[2] is True


def test_the_memory_of_deleted_objects_is_bounded() -> None:
    store = ObjectStore()
    for number in range(BURIED_MAX + 5):
        store.delete(deleted(f"u{number}"))
    assert store.upsert("Pod", make("u0"))[2] is True
    assert store.upsert("Pod", make(f"u{BURIED_MAX}", "b"))[2] is False
