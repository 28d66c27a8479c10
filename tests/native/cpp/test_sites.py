"""Sites that functions find by the place of their call."""


def test_a_text_that_reuses_the_address_of_another_gets_its_own_site(run_cpp, tmp_path):
    assert "1 0\n" == run_cpp("sites", tmp_path / "a.log")

    assert ["from a function 0", "from a function 1"] == (tmp_path / "a.log").read_text().splitlines()
