"""Sites that functions find by the place of their call."""


def test_a_text_in_the_place_of_another_has_a_site_of_its_own(run_cpp, tmp_path):
    assert "1 0\n" == run_cpp("sites", tmp_path / "a.log")

    assert ["from a function 0", "from a function 1"] == (tmp_path / "a.log").read_text().splitlines()
