"""The page of forms is what the forms make it."""

from gallery import PAGE, page


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "python tests/zoo/gallery.py"
