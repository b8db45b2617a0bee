"""`python -m tandemctl` is `tandemctl`."""

from tandemctl.main import main

if __name__ == "__main__":
    main()
